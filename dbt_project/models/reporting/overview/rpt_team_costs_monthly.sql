-- grain: one row per month, team, cost centre, project, component and currency
-- Names are today's; the cost centre is that of the days, so a team that moves in mid-month has two rows.
{%- set costs = [
    'direct_cost', 'idle_cost', 'shared_cost', 'burst_cost', 'outcome_credit_cost', 'adjustment_cost', 'unattributed_cost', 'total_cost',
] %}
{%- set hours = ['gpu_hours', 'sampled_gpu_hours', 'busy_gpu_hours'] %}

with daily as (
    select * from {{ ref('rpt_team_costs_daily') }}
),

teams as (
    select * from {{ ref('dim_teams') }}
),

projects as (
    select * from {{ ref('dim_projects') }}
),

monthly as (
    select
        month_date,
        team_id,
        cost_centre,
        project_id,
        component,
        currency,
        {%- for amount in costs + hours %}
        cast(sum({{ amount }}) as numeric(38, 9)) as {{ amount }},
        {%- endfor %}
        count(distinct usage_date) as day_count,
        min(cost_status) = 'final' and max(cost_status) = 'final' as is_final
    from daily
    group by month_date, team_id, cost_centre, project_id, component, currency
)

select
    monthly.month_date,
    monthly.team_id,
    coalesce(teams.team_name, monthly.team_id) as team_name,
    teams.team_path,
    monthly.cost_centre,
    monthly.project_id,
    coalesce(projects.project_name, monthly.project_id) as project_name,
    monthly.component,
    monthly.currency,
    {%- for amount in costs + hours %}
    monthly.{{ amount }},
    {%- endfor %}
    monthly.day_count,
    case when monthly.is_final then 'final' else 'provisional' end as cost_status
from monthly
left join teams on monthly.team_id = teams.team_id
left join projects on monthly.project_id = projects.project_id
