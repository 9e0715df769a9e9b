-- Who has something to see: every team with cost or a receipt in these months, or with a line in the ledger.
-- The dearest come first: that is the order of colours, legends and lists. No sum goes across currencies, not even here.

-- grain: one row per team
create temp table payers as
with found as (
    select team_id, currency, sum(total_cost) as total_cost from team_months group by all
    union all
    select team_id, currency, 0 as total_cost from receipts
    union all
    select team_id, currency, 0 as total_cost from closes
    union all
    select team_id, currency, 0 as total_cost from true_ups
)

select
    found.team_id,
    coalesce(any_value(teams.team_name), found.team_id) as team_name,
    coalesce(any_value(teams.is_built_in), false) as is_built_in,
    row_number() over (order by max(found.total_cost) desc, found.team_id) as place
from found
left join marts.core.dim_teams as teams on found.team_id = teams.team_id
group by found.team_id;
