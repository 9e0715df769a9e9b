-- grain: one row per number of hours, up to a day's, and each of these hours: what a stretch of a day is joined with to get its hours
-- A join by the number of hours; series per row are several times as expensive.
select
    hour_count,
    hour_number
from (select 1 as one) as anchor
{{ cross_join_series(1, 25, 1, 'hour_count') }}
{{ cross_join_series(0, 'hour_count', 1, 'hour_number') }}
