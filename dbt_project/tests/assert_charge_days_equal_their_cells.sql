{{ config(meta={"dagster": {"ref": {"name": "fct_billed_costs"}}}) }}
-- law 2, nothing dropped: a line's part of a day is cut into pools and components without a rest, and nothing else is booked
with day_parts as (
    select
        usage_date,
        charge_key,
        count(*) as row_count,
        sum(list_cost) as list_cost,
        sum(billed_cost) as billed_cost,
        sum(effective_cost) as effective_cost
    from {{ ref('int_charge_days') }}
    where {{ in_window('usage_date') }}
    group by usage_date, charge_key
),

cells as (
    select
        usage_date,
        charge_key,
        sum(list_cost) as list_cost,
        sum(billed_cost) as billed_cost,
        sum(effective_cost) as effective_cost
    from {{ ref('fct_billed_costs') }}
    where {{ in_window('usage_date') }}
    group by usage_date, charge_key
)

select
    coalesce(day_parts.usage_date, cells.usage_date) as usage_date,
    coalesce(day_parts.charge_key, cells.charge_key) as charge_key,
    day_parts.row_count as day_part_rows,
    day_parts.billed_cost as day_part_billed_cost,
    cells.billed_cost as cells_billed_cost,
    day_parts.effective_cost as day_part_effective_cost,
    cells.effective_cost as cells_effective_cost
from day_parts
full outer join cells on day_parts.usage_date = cells.usage_date and day_parts.charge_key = cells.charge_key
where
    day_parts.charge_key is null
    or cells.charge_key is null
    or day_parts.row_count <> 1
    or day_parts.list_cost <> cells.list_cost
    or day_parts.billed_cost <> cells.billed_cost
    or day_parts.effective_cost <> cells.effective_cost
