-- grain: one row per job run, pool, hour and stretch of time in which it was there, on any of its nodes
-- The stretches of a job in a pool do not overlap: their sum is how long it was there.
{%- set job_hour = ['usage_date', 'hour_ms', 'pool_id', 'job_key'] %}

with stretches as (
    select distinct
        {{ job_hour | join(', ') }},
        start_ms,
        end_ms
    from {{ ref('int_job_node_hours') }}
),

-- What each stretch adds to those that began before it.
additions as (
    select
        {{ job_hour | join(', ') }},
        greatest(
            start_ms,
            coalesce(
                max(end_ms) over (
                    partition by {{ job_hour | join(', ') }} order by start_ms, end_ms
                    rows between unbounded preceding and 1 preceding
                ),
                start_ms
            )
        ) as start_ms,
        end_ms
    from stretches
)

select * from additions
where end_ms > start_ms
