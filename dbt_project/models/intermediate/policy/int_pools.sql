-- grain: one row per pool, as its newest row says; `unmapped` is where charges without a pool are kept
with pools as (
    select
        pool_id,
        pool_name,
        pool_kind,
        cluster_id,
        gpu_model,
        purchase_class,
        owner_team_id
    from {{ ref('stg_policy__pools') }}
    qualify row_number() over (partition by pool_id order by valid_from desc) = 1
),

final as (
    select * from pools
    union all
    select
        'unmapped' as pool_id,
        'Unmapped' as pool_name,
        'unmapped' as pool_kind,
        cast(null as {{ dbt.type_string() }}) as cluster_id,
        cast(null as {{ dbt.type_string() }}) as gpu_model,
        cast(null as {{ dbt.type_string() }}) as purchase_class,
        cast(null as {{ dbt.type_string() }}) as owner_team_id
)

select * from final
