-- What an orchestrator's runs hold and held. Nothing is locked and nothing is written.

-- name: leases
-- For each run that ever claimed a job: whether it holds a live lease now, and whether its newest attempt was cut off,
-- that is: its lease ran out, or another took the job over.
with attempt as (
    select
        a.run_ref,
        a.began,
        a.fence,
        a.ended is null and j.status = 'running' and j.fence = a.fence as held,
        j.lease_until < rowlease.clock() as run_out,
        a.how = 'interrupted' or (a.ended is null and j.fence <> a.fence) as cut_off
    from rowlease.import_attempts as a
    join rowlease.import_jobs as j
        on j.id = a.job_id
    where a.run_ref = any(%(run_refs)s)
)
select
    run_ref,
    bool_or(held and not run_out) as live,
    (array_agg(coalesce(cut_off, false) or (held and run_out) order by began desc, fence desc))[1] as ran_out
from attempt
group by run_ref

-- name: now
-- The moment by the clock that leases are judged by.
select rowlease.clock() as now

-- name: due_of_form
-- The due jobs of one form, in the order of the claim.
select id
from rowlease.import_jobs
where form_name = %(form)s
    and (
        (status = 'pending' and due_at <= rowlease.clock())
        or (status = 'running' and lease_until < rowlease.clock())
    )
order by priority, due_at, created_at, id
limit %(limit)s

-- name: newest_ended
-- The newest import of a form that came to its end and whose rows were not replaced or taken back, and how long ago that was.
select id, rowlease.clock() - finished_at as age
from rowlease.import_jobs
where form_name = %(form)s
    and status in ('success', 'partial_success', 'failed')
    and kind = 'import'
    and replaced_by is null
    and undone_at is null
    and (%(loaded)s is false or status <> 'failed')
order by finished_at desc, id desc
limit 1

-- name: jobs_of_run
-- The jobs that a run claimed, in the order it first did.
select job_id
from rowlease.import_attempts
where run_ref = %(run_ref)s
group by job_id
order by min(began), job_id
