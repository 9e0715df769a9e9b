-- Where the cost of a pool's component came from, and how its hours were spent.
-- Only what the receipt's lines are about.

create or replace temp table bills as
select
    shown_day(usage_date) as day,
    usage_date,
    billed.pool_id,
    billed.component,
    billed.currency,
    billed.source_name,
    coalesce(billed.charge_description, billed.service_name, billed.charge_category, 'a line without words') as description,
    billed.cost_rule,
    count(*) as line_count,
    sum(billed.allocatable_cost) as cost
from core.fct_billed_costs as billed
semi join lines using (usage_date, pool_id, component, currency)
group by all;

create or replace temp table spent_hours as
select shown_day(usage_date) as day, hours.*
from hours
semi join lines using (usage_date, pool_id, component, currency);
