-- grain: one row per UTC day, pool, hourly component, currency and job whose lost work the platform pays: what it is given back
-- Lost is what ran since the last checkpoint before the end: at most the whole run, at most the policy's cap.
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}
{%- set cost_key = ['usage_date', 'hour_ms', 'pool_id', 'component', 'currency'] %}

with outcome_policies as (
    select * from {{ ref('stg_policy__outcome_policies') }}
),

-- Most companies give nothing back, and their jobs need not be looked at.
paying_days as (
    select distinct days.usage_date
    from {{ ref('int_days') }} as days
    inner join outcome_policies on {{ valid_on('outcome_policies', 'days.usage_date') }}
    where outcome_policies.paid_by = 'platform'
),

ended_jobs as (
    select
        job_days.*,
        upper(job_days.state) as end_state
    from {{ ref('int_job_days') }} as job_days
    inner join paying_days on job_days.usage_date = paying_days.usage_date
    where not job_days.is_running and job_days.end_ms > job_days.start_ms
),

payers as (
    select * from {{ ref('int_job_payers') }}
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
        payers.job_number,
        ended_jobs.job_key,
        ended_jobs.end_state,
        ended_jobs.start_ms,
        ended_jobs.end_ms,
        ended_jobs.end_ms - ended_jobs.start_ms as elapsed_ms,
        policies.max_lost_ms,
        policies.policy_row,
        policies.reason,
        -- Users may say that they save more often than the policy expects, but not less often.
        case
            when ended_jobs.checkpoint_interval_ms > 0 and policies.checkpoint_ms > 0
                then least(ended_jobs.checkpoint_interval_ms, policies.checkpoint_ms)
            when ended_jobs.checkpoint_interval_ms > 0 then ended_jobs.checkpoint_interval_ms
            when policies.checkpoint_ms > 0 then policies.checkpoint_ms
        end as interval_ms
    from ended_jobs
    inner join policies
        on
            ended_jobs.usage_date = policies.usage_date
            and ended_jobs.end_state = policies.state
            and ended_jobs.workload_class = policies.workload_class
    inner join payers on ended_jobs.usage_date = payers.usage_date and ended_jobs.job_key = payers.job_key
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

-- How much of the job's time in each pool and hour is lost.
lost_time as (
    select
        {{ qualified('presence', ['usage_date', 'hour_ms', 'pool_id', 'job_number']) }},
        lost.job_key,
        lost.end_state,
        lost.policy_row,
        lost.reason,
        sum(greatest(presence.end_ms - greatest(presence.start_ms, lost.lost_from_ms), 0)) as lost_ms,
        sum(presence.end_ms - presence.start_ms) as present_ms
    from {{ ref('int_job_presence') }} as presence
    inner join lost on presence.job_number = lost.job_number
    group by
        {{ qualified('presence', ['usage_date', 'hour_ms', 'pool_id', 'job_number']) }},
        lost.job_key, lost.end_state, lost.policy_row, lost.reason
),

costs as (
    select
        {{ qualified('job_costs', cost_key) }},
        {{ qualified('job_costs', payer) }},
        job_costs.amount
    from {{ ref('int_job_hour_costs') }} as job_costs
    inner join lost_time on {{ equal_on('job_costs', 'lost_time', ['hour_ms', 'pool_id', 'job_number']) }}
    union all
    select
        {{ cost_key | join(', ') }},
        {{ payer | join(', ') }},
        amount
    from {{ ref('int_burst_hours') }}
    where job_key is not null
),

job_costs as (
    select
        {{ cost_key | join(', ') }},
        {{ payer | join(', ') }},
        cast(sum(amount) as numeric(38, 9)) as amount
    from costs
    group by {{ cost_key | join(', ') }}, {{ payer | join(', ') }}
),

hours as (
    select
        job_costs.*,
        lost_time.end_state,
        lost_time.policy_row,
        lost_time.reason,
        lost_time.lost_ms,
        lost_time.present_ms
    from job_costs
    inner join lost_time on {{ equal_on('job_costs', 'lost_time', ['usage_date', 'hour_ms', 'pool_id', 'job_key']) }}
    where lost_time.lost_ms > 0
),

final as (
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
)

select * from final
where amount <> 0
