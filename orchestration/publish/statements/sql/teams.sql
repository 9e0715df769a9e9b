-- Who gets a statement, and of which state.
select
    team_id,
    max(team_name) as team_name,
    bool_and(is_closed) as is_closed,
    max(close_number) as close_number,
    max(closed_at) as closed_at,
    max(closed_by) as closed_by,
    max(override_reason) as override_reason,
    max(content_hash) as content_hash,
    string_agg(distinct billing_mode, ' and ' order by billing_mode) as billing_modes,
    string_agg(distinct cost_centre, ', ' order by cost_centre) as cost_centres,
    any_value(reporting_currency) as reporting_currency,
    any_value(spans.day_count) as day_count,
    any_value(spans.last_date) as last_date,
    cast($next as date) - cast($month as date) as month_days
from month_lines cross join spans
group by team_id
order by team_id
