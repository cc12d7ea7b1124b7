-- What is old enough to go. Job rows stay: they are the memory that knows a workbook again.
-- Lock order: one job's faults at a time; the job row itself is not locked.

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
