-- Outcome credit: what a run lost since its last checkpoint, where its end state is the platform's affair.
-- The facts do not hold when within an hour a run was there, if it came and went; then the credit is taken from the books.
create or replace temp table outcome_parts as
with jobs as (
    select
        usage_date,
        job_key,
        upper(state) as state,
        workload_class,
        epoch_ms(start_at) as start_ms,
        epoch_ms(end_at) as end_ms,
        epoch_ms(end_at) - epoch_ms(start_at) as elapsed_ms,
        cast(round(checkpoint_interval_seconds * 1000) as bigint) as own_interval_ms
    from core.fct_job_days
    semi join days using (usage_date)
    where not is_running and end_at > start_at
),

policies as (
    select
        jobs.*,
        policies.paid_by,
        -- The shorter one counts; `least` leaves out what is not known.
        least(
            nullif(greatest(jobs.own_interval_ms, 0), 0),
            nullif(cast(round(policies.checkpoint_minutes * 60000) as bigint), 0)
        ) as interval_ms,
        cast(round(policies.max_lost_minutes * 60000) as bigint) as max_lost_ms,
        policy_name('outcome_policies', policies.state || '/' || policies.workload_class, policies.valid_from) as policy_row
    from jobs
    inner join seeds.outcome_policies as policies
        on
            policies.state in (jobs.state, '*')
            and policies.workload_class in (jobs.workload_class, '*')
            and is_valid(policies.valid_from, policies.valid_to, jobs.usage_date)
    qualify
        row_number() over (
            partition by jobs.usage_date, jobs.job_key
            order by policies.state = '*', policies.workload_class = '*'
        ) = 1
),

lost as (
    select
        payer,
        policies.*,
        least(
            elapsed_ms,
            case when interval_ms > 0 then elapsed_ms % interval_ms else elapsed_ms end,
            coalesce(max_lost_ms, elapsed_ms)
        ) as lost_ms
    from policies
    inner join payers using (job_key)
    where paid_by = 'platform'
),

costs as (
    select usage_date, hour_at, pool_id, component, currency, payer, sum(amount) as whole
    from (
        select usage_date, hour_at, pool_id, component, currency, payer, amount
        from direct_rows
        where payer in (select payer from lost)
        union all
        select usage_date, hour_at, pool_id, 'gpu' as component, currency, payer, amount
        from burst_parts
        where payer in (select payer from lost)
    )
    group by all
),

presence as (
    select usage_date, hour_at, pool_id, payer, cast(sum(present_seconds) * 1000 as bigint) as present_ms
    from core.fct_job_usage_hourly
    inner join (select usage_date, job_key, payer from lost) as jobs using (usage_date, job_key)
    group by all
),

timed as (
    select
        costs.*,
        policy_row,
        lost_ms,
        present_ms,
        least(end_ms, epoch_ms(hour_at) + 3600000) - greatest(end_ms - lost_ms, epoch_ms(hour_at)) as lost_of_hour,
        least(end_ms, epoch_ms(hour_at) + 3600000) - greatest(start_ms, epoch_ms(hour_at)) as run_of_hour
    from costs
    inner join lost using (usage_date, payer)
    inner join presence using (usage_date, hour_at, pool_id, payer)
    where lost_ms > 0 and end_ms - lost_ms < epoch_ms(hour_at) + 3600000
),

weighted as (
    select
        timed.*,
        cast(
            case
                when lost_of_hour = run_of_hour then present_ms
                when present_ms = run_of_hour then lost_of_hour
            end as hugeint
        ) as weight,
        cast(present_ms as hugeint) as total
    from timed
)

select
    weighted.*,
    weight as running,
    -share(whole, weight, total) as amount
from weighted;

-- grain: one row per day, pool, component, currency and job: what it was given back (the platform has the opposite)
create or replace temp table outcome_rows as
with recomputed as (
    select usage_date, pool_id, component, currency, payer, policy_row, sum(amount) as amount
    from outcome_parts
    group by all
),

credits as (
    select usage_date, pool_id, component, currency, payer, policy_row, amount
    from booked
    where allocation_kind = 'outcome_credit' and payer not in (select payer from teams)
),

unknown as (
    select usage_date, payer
    from outcome_parts
    where weight is null
)

select *, true as is_recomputed
from recomputed
anti join unknown using (usage_date, payer)
union all by name
select *, false as is_recomputed
from credits
semi join unknown using (usage_date, payer);
