select jobs.*, job_facts.* exclude (team_id, project_id, job_key)
from jobs
inner join job_facts
    on
        jobs.team_id = job_facts.team_id
        and jobs.job_key = job_facts.job_key
        and jobs.project_id is not distinct from job_facts.project_id
where jobs.cost_rank <= $most_jobs or jobs.waste_rank <= $most_jobs
order by jobs.team_id, jobs.currency desc, jobs.waste_rank nulls last, jobs.cost_rank, jobs.job_key, jobs.project_id
