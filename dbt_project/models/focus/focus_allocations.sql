-- grain: one row per bill line, UTC day that it covers, team and project; without a team: what nobody is charged for
-- Columns are written as FOCUS 1.3 writes them. docs/focus-out.md tells where each comes from.
{%- set costs = ['list_cost', 'billed_cost', 'effective_cost', 'allocatable_cost'] %}
{%- set cell = ['usage_date', 'pool_id', 'component', 'currency'] %}
{%- set origin = ['usage_date', 'charge_key'] %}
{%- set service_categories = [
    'AI and Machine Learning', 'Analytics', 'Business Applications', 'Compute', 'Databases', 'Developer Tools', 'Multicloud',
    'Identity', 'Integration', 'Internet of Things', 'Management and Governance', 'Media', 'Migration', 'Mobile', 'Networking',
    'Security', 'Storage', 'Web', 'Other',
] %}

with charges as (
    -- What the star does not keep of a line, as it was landed.
    select
        date as usage_date,
        charge_key,
        billing_account_id,
        sub_account_id,
        charge_class,
        charge_frequency,
        service_category,
        sku_id,
        region_id,
        resource_type,
        commitment_id,
        commitment_status,
        {{ utc_timestamp('billing_period_start_at') }} as billing_period_start_at,
        {{ utc_timestamp('billing_period_end_at') }} as billing_period_end_at
    from {{ source('landing', 'charges') }}
    where {{ in_window('date') }}
),

billed as (
    select * from {{ ref('fct_billed_costs') }}
    where {{ in_window('usage_date') }}
),

teams as (
    select * from {{ ref('fct_team_days') }}
    where {{ in_window('usage_date') }}
),

projects as (
    select * from {{ ref('fct_project_days') }}
    where {{ in_window('usage_date') }}
),

-- What a line has in a pool and component is weighed by its cost; by what was billed where it costs nothing that day.
weighed as (
    select
        billed.*,
        cast(1 as numeric(38, 9)) as whole,
        case
            when sum(billed.allocatable_cost) over (partition by {{ qualified('billed', origin) }}) <> 0
                then {{ nano_units('billed.allocatable_cost') }}
            when sum(billed.billed_cost) over (partition by {{ qualified('billed', origin) }}) <> 0
                then {{ nano_units('billed.billed_cost') }}
            else {{ as_weight('1') }}
        end as cell_weight
    from billed
),

running as (
    {{ signed_weights('weighed', 'cell_weight', by=origin, order_by=['pool_id', 'component']) }}
),

cells as (
    select
        running.*,
        {{ signed_part_of('running.whole', 'running.turned_weight', 'running.running_weight', 'running.total_weight') }} as ratio
    from running
),

-- Who pays a pool's component on that day, transfers included: a team that is credited more than charged weighs below 0.
payers as (
    select
        {{ qualified('allocations', cell) }},
        allocations.team_id,
        allocations.project_id,
        cast(sum(allocations.amount) as numeric(38, 9)) as amount,
        {{ nano_units('sum(allocations.amount)') }} as payer_weight
    from {{ ref('fct_cost_allocations') }} as allocations
    where {{ in_window('allocations.usage_date') }}
    group by {{ qualified('allocations', cell) }}, allocations.team_id, allocations.project_id
    having sum(allocations.amount) <> 0
),

shares as (
    {{ signed_weights('payers', 'payer_weight', by=cell, order_by=['team_id', 'project_id']) }}
),

parts as (
    select
        cells.usage_date,
        cells.charge_key,
        cells.pool_id,
        cells.component,
        cells.currency,
        shares.team_id,
        shares.project_id,
        shares.amount,
        {%- for amount in ['ratio'] + costs %}
        case
            when shares.total_weight is null then cells.{{ amount }}
            else {{ signed_part_of(
                'cells.' ~ amount, 'shares.turned_weight', 'shares.running_weight', 'shares.total_weight'
            ) }}
        end as {{ amount }}{% if not loop.last %},{% endif %}
        {%- endfor %}
    from cells
    left join shares
        on
            {{ equal_on('cells', 'shares', cell) }}
            and shares.total_weight <> 0
),

elements as (
    select
        parts.*,
        '{"AllocatedRatio":' || {{ number_as_text('parts.ratio') }}
        || case
            when parts.amount is null then ''
            else ',"UsageUnit":' || {{ json_text('parts.currency') }} || ',"UsageQuantity":' || {{ number_as_text('parts.amount') }}
        end
        || ',"x_PoolId":' || {{ json_text('parts.pool_id') }}
        || ',"x_Component":' || {{ json_text('parts.component') }} || '}' as element
    from parts
),

allocated as (
    select
        usage_date,
        charge_key,
        team_id,
        project_id,
        '{"Elements":[' || {{ dbt.listagg('element', "','", 'order by pool_id, component') }} || ']}' as method_details,
        {%- for amount in ['ratio'] + costs %}
        cast(sum({{ amount }}) as numeric(38, 9)) as {{ amount }}{% if not loop.last %},{% endif %}
        {%- endfor %}
    from elements
    group by usage_date, charge_key, team_id, project_id
),

-- Everything but costs is the same in all cells of a line and day.
lines as (
    select * from billed
    qualify row_number() over (partition by usage_date, charge_key order by pool_id, component) = 1
),

periods as (
    select
        lines.*,
        greatest(lines.spread_start_at, {{ timestamp_of(day_start_ms('lines.usage_date')) }}) as period_start_at,
        least(lines.spread_end_at, {{ timestamp_of(day_start_ms('lines.usage_date') ~ ' + 86400000') }}) as period_end_at
    from lines
),

-- noqa: disable=CP02,AL09
final as (
    select
        'apportion-pool-day' as AllocatedMethodId,
        allocated.method_details as AllocatedMethodDetails,
        allocated.team_id
        || case when allocated.project_id is null then '' else '/' || allocated.project_id end as AllocatedResourceId,
        coalesce(teams.team_name, allocated.team_id)
        || case
            when allocated.project_id is null then ''
            else ' / ' || coalesce(projects.project_name, allocated.project_id)
        end as AllocatedResourceName,
        case
            when allocated.team_id is not null
                then
                    '{"apportion:team":' || {{ json_text('allocated.team_id') }}
                    || case
                        when allocated.project_id is null then ''
                        else ',"apportion:project":' || {{ json_text('allocated.project_id') }}
                    end
                    || case
                        when teams.cost_centre is null then ''
                        else ',"apportion:cost-centre":' || {{ json_text('teams.cost_centre') }}
                    end
                    || '}'
        end as AllocatedTags,
        cast(null as string) as AvailabilityZone,
        allocated.billed_cost as BilledCost,
        coalesce(charges.billing_account_id, periods.source_name) as BillingAccountId,
        cast(null as string) as BillingAccountName,
        periods.currency as BillingCurrency,
        charges.billing_period_end_at as BillingPeriodEnd,
        charges.billing_period_start_at as BillingPeriodStart,
        periods.charge_category as ChargeCategory,
        case when charges.charge_class = 'Correction' then 'Correction' end as ChargeClass,
        periods.charge_description as ChargeDescription,
        case
            when charges.charge_frequency in ('One-Time', 'Recurring', 'Usage-Based') then charges.charge_frequency
            when periods.charge_category = 'Usage' then 'Usage-Based'
            else 'One-Time'
        end as ChargeFrequency,
        case
            when periods.period_start_at < periods.period_end_at then periods.period_end_at
            else {{ timestamp_of(day_start_ms('periods.usage_date') ~ ' + 86400000') }}
        end as ChargePeriodEnd,
        case
            when periods.period_start_at < periods.period_end_at then periods.period_start_at
            else {{ timestamp_of(day_start_ms('periods.usage_date')) }}
        end as ChargePeriodStart,
        cast(null as string) as CommitmentDiscountCategory,
        charges.commitment_id as CommitmentDiscountId,
        cast(null as string) as CommitmentDiscountName,
        case when charges.commitment_status in ('Used', 'Unused') then charges.commitment_status end as CommitmentDiscountStatus,
        cast(null as string) as CommitmentDiscountType,
        cast(null as numeric(38, 9)) as ConsumedQuantity,
        cast(null as string) as ConsumedUnit,
        case
            when periods.charge_category in ('Usage', 'Purchase') then allocated.list_cost
            else allocated.billed_cost
        end as ContractedCost,
        cast(null as numeric(38, 9)) as ContractedUnitPrice,
        allocated.effective_cost as EffectiveCost,
        periods.provider as HostProviderName,
        periods.invoice_id as InvoiceId,
        periods.provider as InvoiceIssuerName,
        allocated.list_cost as ListCost,
        cast(null as numeric(38, 9)) as ListUnitPrice,
        cast(null as string) as PricingCategory,
        cast(null as numeric(38, 9)) as PricingQuantity,
        cast(null as string) as PricingUnit,
        periods.provider as ProviderName,
        periods.provider as PublisherName,
        charges.region_id as RegionId,
        charges.region_id as RegionName,
        periods.resource_id as ResourceId,
        cast(null as string) as ResourceName,
        case when periods.resource_id is not null then coalesce(charges.resource_type, periods.service_name) end as ResourceType,
        case
            when
                charges.service_category in (
                    {%- for category in service_categories %}
                    '{{ category }}'{% if not loop.last %},{% endif %}
                    {%- endfor %}
                )
                then charges.service_category
            else 'Other'
        end as ServiceCategory,
        coalesce(periods.service_name, periods.provider) as ServiceName,
        periods.provider as ServiceProviderName,
        charges.sku_id as SkuId,
        cast(null as string) as SkuPriceId,
        charges.sub_account_id as SubAccountId,
        cast(null as string) as SubAccountName,
        periods.tags as Tags,
        allocated.allocatable_cost as x_AllocatableCost,
        allocated.ratio as x_AllocatedRatio,
        periods.charge_key as x_ChargeId,
        teams.cost_centre as x_CostCentre,
        periods.cost_status as x_CostStatus,
        allocated.project_id as x_ProjectId,
        periods.source_name as x_SourceName,
        allocated.team_id as x_TeamId,
        periods.usage_date as x_UsageDate
    from allocated
    inner join periods on {{ equal_on('allocated', 'periods', origin) }}
    inner join charges on {{ equal_on('allocated', 'charges', origin) }}
    left join teams on allocated.usage_date = teams.usage_date and allocated.team_id = teams.team_id
    left join projects on allocated.usage_date = projects.usage_date and allocated.project_id = projects.project_id
)

select * from final
