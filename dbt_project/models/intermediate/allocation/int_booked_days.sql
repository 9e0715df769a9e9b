-- grain: one row per UTC day whose books are read row by row before they are written down
-- Those of a what-if, which keeps nothing else; and those on which something is adjusted, which on most days nothing is.
with days as (
    select * from {{ ref('int_days') }}
),

adjustments as (
    select * from {{ ref('stg_policy__adjustments') }}
)

select days.usage_date
from days
inner join adjustments on {{ valid_on('adjustments', 'days.usage_date') }}
{%- if var("scenario") %}
union distinct
select usage_date
from days
{%- else %}
group by days.usage_date
{%- endif %}
