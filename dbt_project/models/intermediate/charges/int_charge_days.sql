-- grain: one row per bill line and UTC day that it covers, and per part of a commitment's fee and UTC day
-- A line gives each day the part of its time that falls on it. The parts of all its days telescope to the line,
-- and each is known without looking at another day. The parts of an amortized fee are lines of their own
-- (int_commitment_lines). Each part knows its owner, and where it is booked if its component works by day; what is booked
-- by the hour is cut in int_charge_hours.
{%- set of_the_bill = [
    'source_name', 'provider', 'invoice_id', 'currency', 'charge_category', 'charge_description', 'billing_period_date'
] %}
{%- set of_the_place = [
    'service_name', 'resource_id', 'tags', 'cost_rule', 'rule_component', 'rule_pool_id', 'cost_grain', 'driver', 'has_owner'
] %}

with charges as (
    select * from {{ ref('int_charges_classified') }}
),

days as (
    select * from {{ ref('int_days') }}
),

owners as (
    select * from {{ ref('int_payers') }}
    where tags is not null
),

timed as (
    select
        charges.*,
        case when charges.is_amortized then cast(0 as numeric(38, 9)) else charges.effective_cost end as own_effective_cost,
        greatest(days.day_start_ms, charges.spread_start_ms) as part_start_ms,
        least(days.day_end_ms, charges.spread_end_ms) as part_end_ms
    from charges
    inner join days on charges.usage_date = days.usage_date
    where days.day_start_ms < charges.spread_end_ms and days.day_end_ms > charges.spread_start_ms
),

own_parts as (
    select
        timed.usage_date,
        timed.charge_key,
        cast(null as {{ dbt.type_string() }}) as commitment_fee_key,
        {{ qualified('timed', of_the_bill + of_the_place) }},
        timed.is_final,
        timed.spread_start_ms,
        timed.spread_end_ms,
        {%- for amount, of_line in [
            ('list_cost', 'timed.list_cost'), ('billed_cost', 'timed.billed_cost'), ('effective_cost', 'timed.own_effective_cost'),
        ] %}
        case
            when timed.part_start_ms = timed.spread_start_ms and timed.part_end_ms = timed.spread_end_ms then {{ of_line }}
            else
                {{ share(of_line, 'timed.part_end_ms - timed.spread_start_ms', 'timed.spread_end_ms - timed.spread_start_ms') }}
                - {{ share(of_line, 'timed.part_start_ms - timed.spread_start_ms', 'timed.spread_end_ms - timed.spread_start_ms') }}
        end as {{ amount }},
        {%- endfor %}
        timed.billed_cost as line_billed_cost
    from timed
),

parts as (
    select * from own_parts
    union all
    select * from {{ ref('int_commitment_lines') }}
),

final as (
    select
        parts.usage_date,
        parts.charge_key,
        parts.commitment_fee_key,
        {{ qualified('parts', of_the_bill) }},
        parts.service_name,
        parts.resource_id,
        parts.tags,
        parts.cost_rule,
        case when parts.cost_grain is null then 'other' else parts.rule_component end as rule_component,
        case
            when parts.cost_grain is null then 'unmapped'
            when parts.cost_grain = 'day' then coalesce(parts.rule_pool_id, 'unmapped')
            else parts.rule_pool_id
        end as rule_pool_id,
        coalesce(parts.cost_grain = 'hour', false) as is_hourly,
        parts.driver,
        owners.team_id as owner_team_id,
        owners.project_id as owner_project_id,
        parts.is_final,
        parts.spread_start_ms,
        parts.spread_end_ms,
        parts.list_cost,
        parts.billed_cost,
        parts.effective_cost,
        parts.line_billed_cost
    from parts
    left join owners on parts.has_owner and parts.usage_date = owners.usage_date and parts.tags = owners.tags
)

select * from final
