-- grain: one row per UTC day, pool, hourly component, currency and job whose lost work the platform pays: what it is given back
-- Lost is what ran since the last checkpoint before the end: at most the whole run, at most the policy's cap.
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}
{%- set cost_key = ['usage_date', 'hour_ms', 'pool_id', 'component', 'currency'] %}

with ended_jobs as (
    select
        job_days.*,
        upper(job_days.state) as end_state
    from {{ ref('int_job_days') }} as job_days
    where not job_days.is_running and job_days.end_ms > job_days.start_ms
),

outcome_policies as (
    select * from {{ ref('stg_policy__outcome_policies') }}
),

outcomes as (
    select distinct
        usage_date,
        end_state as state,
        workload_class
    from ended_jobs
),

policies as (
    {{ most_specific(
        'outcomes', 'outcome_policies', ['state', 'workload_class'],
        ['paid_by', 'checkpoint_ms', 'max_lost_ms', 'policy_row', 'reason']
    ) }}
),

checkpointed as (
    select
        ended_jobs.usage_date,
        ended_jobs.job_key,
        ended_jobs.end_state,
        ended_jobs.start_ms,
        ended_jobs.end_ms,
        ended_jobs.end_ms - ended_jobs.start_ms as elapsed_ms,
        policies.max_lost_ms,
        policies.policy_row,
        policies.reason,
        case
            when ended_jobs.checkpoint_interval_ms > 0 then ended_jobs.checkpoint_interval_ms
            when policies.checkpoint_ms > 0 then policies.checkpoint_ms
        end as interval_ms
    from ended_jobs
    inner join policies
        on
            ended_jobs.usage_date = policies.usage_date
            and ended_jobs.end_state = policies.state
            and ended_jobs.workload_class = policies.workload_class
    where policies.paid_by = 'platform'
),

lost as (
    select
        checkpointed.*,
        end_ms - least(
            elapsed_ms,
            case when interval_ms is null then elapsed_ms else mod(elapsed_ms, interval_ms) end,
            coalesce(max_lost_ms, elapsed_ms)
        ) as lost_from_ms
    from checkpointed
),

job_costs as (
    select
        {{ cost_key | join(', ') }},
        {{ payer | join(', ') }},
        cast(sum(amount) as numeric(38, 9)) as amount
    from (
        select
            {{ cost_key | join(', ') }},
            {{ payer | join(', ') }},
            amount
        from {{ ref('int_job_hour_costs') }}
        union all
        select
            {{ cost_key | join(', ') }},
            {{ payer | join(', ') }},
            amount
        from {{ ref('int_burst_hours') }}
        where job_key is not null
    ) as charged
    group by {{ cost_key | join(', ') }}, {{ payer | join(', ') }}
),

hours as (
    select
        {{ qualified('job_costs', cost_key) }},
        {{ qualified('job_costs', payer) }},
        lost.end_state,
        lost.policy_row,
        lost.reason,
        job_costs.amount,
        least(lost.end_ms, job_costs.hour_ms + 3600000) - greatest(lost.lost_from_ms, job_costs.hour_ms) as lost_ms,
        least(lost.end_ms, job_costs.hour_ms + 3600000) - greatest(lost.start_ms, job_costs.hour_ms) as present_ms
    from job_costs
    inner join lost on job_costs.usage_date = lost.usage_date and job_costs.job_key = lost.job_key
    where lost.lost_from_ms < least(lost.end_ms, job_costs.hour_ms + 3600000)
)

select
    usage_date,
    pool_id,
    component,
    currency,
    {{ payer | join(', ') }},
    policy_row,
    {{ dbt.concat(["end_state", "': '", "reason"]) }} as reason,
    cast(sum({{ share('amount', as_weight('lost_ms'), as_weight('present_ms')) }}) as numeric(38, 9)) as amount
from hours
group by usage_date, pool_id, component, currency, {{ payer | join(', ') }}, policy_row, end_state, reason
