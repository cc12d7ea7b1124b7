-- What is old enough to go. Job rows stay: they are the memory that knows a workbook again.
-- Lock order: one job's faults at a time; the job row itself is not locked. Of timers, runs and messages, rows that another
-- transaction has locked are passed over.

-- name: delete_timers
-- Timers that fired or were cancelled long ago; one that failed stays until somebody has looked at it.
delete from rowlease.timer_jobs
where id in (
    select id
    from rowlease.timer_jobs
    where status in ('completed', 'cancelled')
        and finished_at < rowlease.clock() - %(keep)s::interval
    order by id
    limit %(limit)s
    for update skip locked
)

-- name: delete_runs
-- Durable runs that ended well long ago, with their steps. One that was started under a key stays: it knows the key again.
delete from rowlease.task_runs
where id in (
    select id
    from rowlease.task_runs
    where status in ('succeeded', 'cancelled')
        and run_key is null
        and finished_at < rowlease.clock() - %(keep)s::interval
    order by id
    limit %(limit)s
    for update skip locked
)

-- name: delete_messages
-- Messages that were delivered long ago; a dead one holds back its key and stays.
delete from rowlease.outbox_messages
where id in (
    select id
    from rowlease.outbox_messages
    where status = 'dispatched'
        and finished_at < rowlease.clock() - %(keep)s::interval
    order by id
    limit %(limit)s
    for update skip locked
)

-- name: jobs_with_old_faults
-- Jobs that ended so long ago that their faults may go.
select j.id
from rowlease.import_jobs as j
where j.finished_at < rowlease.clock() - %(keep)s::interval
    and exists (
        select
        from rowlease.import_row_faults as f
        where f.job_id = j.id
    )
order by j.id
limit %(limit)s

-- name: delete_faults
-- The faults of one job that ended long ago; a job that was taken up meanwhile keeps them.
delete from rowlease.import_row_faults as f
using rowlease.import_jobs as j
where f.job_id = %(id)s
    and j.id = f.job_id
    and j.finished_at < rowlease.clock() - %(keep)s::interval

-- name: jobs_with_old_images
-- Jobs that ended so long ago that what they changed need not be known any more; none that is being undone.
select j.id
from rowlease.import_jobs as j
where j.finished_at < rowlease.clock() - %(keep)s::interval
    and exists (
        select
        from rowlease.import_before_images as b
        where b.job_id = j.id
    )
    and not exists (
        select
        from rowlease.import_jobs as u
        where u.parent_id = j.id
            and u.kind = 'undo'
            and u.status in ('pending', 'running')
    )
order by j.id
limit %(limit)s

-- name: delete_images
-- What one job changed, long after it ended.
delete from rowlease.import_before_images as b
using rowlease.import_jobs as j
where b.job_id = %(id)s
    and j.id = b.job_id
    and j.finished_at < rowlease.clock() - %(keep)s::interval

-- name: needed
-- Of these contents the ones that stay: a job that is open or can be taken up reads them, or one ended not long ago.
select distinct content_hash
from rowlease.import_jobs
where content_hash = any(%(hashes)s)
    and (
        status in ('pending', 'running')
        or (status in ('failed', 'cancelled') and total_rows is null and replaced_by is null)
        or finished_at >= rowlease.clock() - %(keep)s::interval
    )
