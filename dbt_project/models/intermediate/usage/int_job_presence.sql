-- grain: one row per job run, pool, hour and stretch of time in which it was there, on any of its nodes
-- The stretches of a job in a pool do not overlap: their sum is how long it was there.
{%- set job_hour = ['usage_date', 'hour_ms', 'pool_id', 'job_number'] %}

with spans as (
    select * from {{ ref('int_job_spans') }}
),

broken_stretches as (
    select distinct
        {{ qualified('node_hours', job_hour) }},
        node_hours.start_ms,
        node_hours.end_ms
    from {{ ref('int_job_node_hours') }} as node_hours
    inner join spans on {{ equal_on('node_hours', 'spans', job_hour) }}
    where not spans.is_one_stretch
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
    from broken_stretches
)

select
    {{ qualified('node_hours', job_hour) }},
    node_hours.start_ms,
    node_hours.end_ms,
    true as is_one_stretch
from {{ ref('int_job_node_hours') }} as node_hours
left join spans on {{ equal_on('node_hours', 'spans', job_hour) }}
where spans.job_number is null
union all
select
    {{ job_hour | join(', ') }},
    start_ms,
    end_ms,
    true as is_one_stretch
from spans
where is_one_stretch
union all
select
    {{ job_hour | join(', ') }},
    start_ms,
    end_ms,
    false as is_one_stretch
from additions
where end_ms > start_ms
