-- grain: one row per job run and UTC day of which the scheduler has several parts
-- A table of few rows or none, so that the many jobs of one part are told from them without being counted again.
select
    usage_date,
    job_key,
    count(*) as part_count
from {{ ref('stg_scheduler__jobs') }}
group by usage_date, job_key
having count(*) > 1
