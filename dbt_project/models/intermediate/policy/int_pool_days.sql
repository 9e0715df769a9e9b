-- grain: one row per UTC day of the window and pool, as the row valid on the day says
-- `unmapped` is where charges without a pool are kept, `none` where amounts that concern no pool are moved, and
-- `commitments`, unless the seed describes it, where commitments that nobody used are kept.
with days as (
    select * from {{ ref('int_days') }}
),

pools as (
    select * from {{ ref('stg_policy__pools') }}
),

final as (
    select
        days.usage_date,
        pools.pool_id,
        pools.pool_name,
        pools.pool_kind,
        pools.cluster_id,
        pools.gpu_model,
        pools.purchase_class,
        pools.owner_team_id
    from days
    inner join pools on {{ valid_on('pools', 'days.usage_date') }}
    {%- for pool_id, pool_name, pool_kind in [
        ('unmapped', 'Unmapped', 'unmapped'),
        ('none', 'No pool', 'none'),
        ('commitments', 'Unused commitments', 'overhead'),
    ] %}
    union all
    select
        days.usage_date,
        '{{ pool_id }}' as pool_id,
        '{{ pool_name }}' as pool_name,
        '{{ pool_kind }}' as pool_kind,
        cast(null as {{ dbt.type_string() }}) as cluster_id,
        cast(null as {{ dbt.type_string() }}) as gpu_model,
        cast(null as {{ dbt.type_string() }}) as purchase_class,
        cast(null as {{ dbt.type_string() }}) as owner_team_id
    from days
    left join pools on pools.pool_id = '{{ pool_id }}' and {{ valid_on('pools', 'days.usage_date') }}
    where pools.pool_id is null
    {%- endfor %}
)

select * from final
