-- Each hour's used cost, split over the jobs that held the component, by what they weigh.
create or replace temp view direct_pots as
select pot, slot, usage_date, hour_at, pool_id, component, currency, used_cost as whole
from hours
where used_cost <> 0;

create or replace temp view direct_claims as
select pot, null as place, payer, team_id, weight, quantity
from direct_pots
inner join held using (slot);

create or replace temp table direct_parts as
from split('direct_pots', 'direct_claims');
