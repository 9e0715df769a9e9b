-- grain: one row per month, team, project, component and currency
{%- set costs = ['direct_cost', 'idle_cost', 'shared_cost', 'unattributed_cost', 'total_cost'] %}
{%- set hours = ['gpu_hours', 'sampled_gpu_hours', 'busy_gpu_hours'] %}

select
    month_date,
    team_id,
    team_name,
    team_path,
    cost_centre,
    project_id,
    project_name,
    component,
    currency,
    {%- for amount in costs + hours %}
    cast(sum({{ amount }}) as numeric(38, 9)) as {{ amount }},
    {%- endfor %}
    count(distinct usage_date) as day_count,
    case when min(cost_status) = 'final' and max(cost_status) = 'final' then 'final' else 'provisional' end as cost_status
from {{ ref('rpt_team_costs_daily') }}
group by month_date, team_id, team_name, team_path, cost_centre, project_id, project_name, component, currency
