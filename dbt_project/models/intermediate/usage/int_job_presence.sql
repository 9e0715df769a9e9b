-- grain: one row per job run, pool and hour: how long it was there, on any of its nodes
{%- set job_hour = ['usage_date', 'hour_ms', 'pool_id', 'job_key'] %}

with job_node_hours as (
    select * from {{ ref('int_job_node_hours') }}
),

stretches as (
    select distinct
        {{ job_hour | join(', ') }},
        start_ms,
        end_ms
    from job_node_hours
),

-- What each stretch adds to those that began before it.
additions as (
    select
        {{ job_hour | join(', ') }},
        end_ms - greatest(
            start_ms,
            coalesce(
                max(end_ms) over (
                    partition by {{ job_hour | join(', ') }} order by start_ms, end_ms
                    rows between unbounded preceding and 1 preceding
                ),
                start_ms
            )
        ) as added_ms
    from stretches
)

select
    {{ job_hour | join(', ') }},
    sum(greatest(added_ms, 0)) as present_ms
from additions
group by {{ job_hour | join(', ') }}
