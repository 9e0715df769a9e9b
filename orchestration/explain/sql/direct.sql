-- Each hour's used cost, split over the jobs that held the component, by what they weigh.
create or replace temp view direct_pots as
select pot, slot, used_cost as whole
from hours
where used_cost <> 0;

create or replace temp view direct_claims as
select pot, null as place, payer, weight
from direct_pots
inner join held using (slot);

create or replace temp table direct_parts as
select pot, payer, weight, running, total, amount
from split('direct_pots', 'direct_claims');

create or replace temp view direct_rows as
select parts.*, slot, usage_date, hour_at, pool_id, component, currency, used_cost as whole
from direct_parts as parts
inner join hours using (pot);

create or replace temp table direct_days as
with sums as (
    select day_pot, payer, sum(amount) as amount
    from direct_parts
    inner join hours using (pot)
    group by all
)

select usage_date, pool_id, component, currency, payer, amount
from sums
inner join (select distinct day_pot, usage_date, pool_id, component, currency from hours) as day_pots using (day_pot);
