-- Of the pools that a team pays for.
with paid as (
    select distinct team_id, pool_id, component, currency from books
)

select
    paid.team_id,
    paid.currency,
    paid.pool_id,
    pools.pool_name,
    pools.gpu_model,
    paid.component,
    pool_rates.methods,
    pool_rates.mean_rate,
    pool_rates.lowest_rate,
    pool_rates.highest_rate
from paid
inner join pool_rates
    on
        paid.pool_id = pool_rates.pool_id
        and paid.component = pool_rates.component
        and paid.currency = pool_rates.currency
left join marts.core.dim_pools as pools on paid.pool_id = pools.pool_id
order by paid.team_id, pools.pool_name, paid.pool_id, list_position(['gpu', 'cpu', 'memory', 'energy'], paid.component), paid.currency desc
