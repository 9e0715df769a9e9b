-- grain: one row per UTC day, pool, daily component, currency, driver, team and project: overhead, and what no rule claims
with overhead_costs as (
    select * from {{ ref('int_overhead_costs') }}
),

overhead_weights as (
    select * from {{ ref('int_overhead_weights') }}
    where weight > 0
),

weighted as (
    select
        overhead_costs.*,
        overhead_weights.team_id,
        overhead_weights.project_id,
        overhead_weights.weight
    from overhead_costs
    inner join overhead_weights
        on
            overhead_costs.usage_date = overhead_weights.usage_date
            and overhead_costs.overhead_base = overhead_weights.overhead_base
            and (overhead_weights.pool_id is null or overhead_costs.pool_id = overhead_weights.pool_id)
),

parts as (
    {{ split(
        'weighted', ['cost'], 'weight',
        by=['usage_date', 'pool_id', 'component', 'currency', 'driver'],
        order_by=['team_id', 'project_id']
    ) }}
),

bases_in_use as (
    select distinct
        usage_date,
        overhead_base,
        pool_id
    from overhead_weights
),

final as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        team_id,
        project_id,
        'shared' as allocation_kind,
        {{ dbt.concat(["'overhead by '", "overhead_base"]) }} as reason,
        cost_part as amount
    from parts
    union all
    select
        overhead_costs.usage_date,
        overhead_costs.pool_id,
        overhead_costs.component,
        overhead_costs.currency,
        case when overhead_costs.overhead_base is null then 'unattributed' else 'platform' end as team_id,
        cast(null as {{ dbt.type_string() }}) as project_id,
        case when overhead_costs.overhead_base is null then 'unattributed' else 'shared' end as allocation_kind,
        case
            when overhead_costs.pool_id = 'unmapped' then 'no cost rule gives this charge a pool'
            when overhead_costs.overhead_base is null then 'no owner, no use and no overhead policy'
            else 'nobody to share the overhead with on this day'
        end as reason,
        overhead_costs.cost as amount
    from overhead_costs
    left join bases_in_use
        on
            overhead_costs.usage_date = bases_in_use.usage_date
            and overhead_costs.overhead_base = bases_in_use.overhead_base
            and (bases_in_use.pool_id is null or overhead_costs.pool_id = bases_in_use.pool_id)
    where bases_in_use.usage_date is null
)

select * from final
