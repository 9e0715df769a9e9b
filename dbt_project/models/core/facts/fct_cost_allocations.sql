-- grain: one row per UTC day, pool, component, currency, payer (team, project, user, job), allocation kind and idle cause
-- Transfers have a row per policy row, counterparty and reason, so that both sides of a pair can be seen.
-- A view on DuckDB, where four rows of five would repeat what is said once per job and once per pool; a table on BigQuery, which
-- bills each branch as a scan.
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}
{%- set drivers = {
    'gpu': ('gpu_seconds', 'gpu_seconds'),
    'cpu': ('cpu_core_seconds', 'cpu_core_seconds'),
    'memory': ('memory_gib_seconds', 'memory_gib_seconds'),
    'energy': ('kwh', 'energy_kwh'),
} %}

with job_costs as (
    {%- for component, (driver, quantity) in drivers.items() %}
    select
        usage_date,
        pool_id,
        '{{ component }}' as component,
        currency,
        {{ payer | join(', ') }},
        'direct' as allocation_kind,
        {{ no_text }} as idle_cause,
        {{ component }}_cost as amount,
        '{{ driver }}' as driver,
        {{ quantity }} as driver_quantity,
        {{ no_text }} as policy_row
    from {{ ref('fct_job_costs') }}
    where {{ component }}_cost is not null and {{ in_kept_window('usage_date') }}
    union all
    {%- endfor %}
    {%- for component in ['gpu', 'cpu', 'memory'] %}
    select
        usage_date,
        pool_id,
        '{{ component }}' as component,
        currency,
        {{ payer | join(', ') }},
        'idle' as allocation_kind,
        idle_cause,
        {{ component }}_cost as amount,
        {{ no_text }} as driver,
        cast(null as numeric(38, 9)) as driver_quantity,
        policy_row
    from {{ ref('fct_job_idle_costs') }}
    where {{ component }}_cost is not null and {{ in_kept_window('usage_date') }}
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

explained as (
    select
        job_costs.*,
        terms.method,
        case
            when job_costs.allocation_kind = 'direct' then terms.reason
            when job_costs.policy_row is null then 'no idle policy names this pool and cause'
            else 'in proportion to use'
        end as reason_of_use,
        terms.policy_row as terms_policy_row,
        terms.policy_hash,
        terms.cost_status
    from job_costs
    inner join {{ ref('fct_cost_terms') }} as terms
        on {{ equal_on('job_costs', 'terms', ['usage_date', 'pool_id', 'component', 'currency']) }}
    where {{ in_kept_window('terms.usage_date') }}
)

select
    usage_date,
    pool_id,
    component,
    currency,
    {{ payer | join(', ') }},
    allocation_kind,
    idle_cause,
    amount,
    driver,
    driver_quantity,
    method,
    case
        when team_id = 'unattributed' then {{ dbt.concat(['reason_of_use', "', by somebody whom no payer rule knows'"]) }}
        else reason_of_use
    end as reason,
    coalesce(policy_row, terms_policy_row) as policy_row,
    {{ no_text }} as counterparty_team_id,
    policy_hash,
    cost_status
from explained
union all
select
    usage_date,
    pool_id,
    component,
    currency,
    {{ payer | join(', ') }},
    allocation_kind,
    idle_cause,
    amount,
    driver,
    driver_quantity,
    method,
    reason,
    policy_row,
    counterparty_team_id,
    policy_hash,
    cost_status
from {{ ref('fct_other_costs') }}
where {{ in_kept_window('usage_date') }}
