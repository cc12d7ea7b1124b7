-- Import jobs and what they hang on: forms, parents, undos. Nothing here is leased or locked.

-- name: form_of
-- The form that a job was submitted with.
select f.name, f.version, f.digest, f.definition
from rowlease.import_jobs as j
join rowlease.forms as f
    on f.name = j.form_name
    and f.version = j.form_version
where j.id = %(id)s

-- name: version_of
-- The version under which a form with this digest is stored.
select version
from rowlease.forms
where name = %(name)s
    and digest = %(digest)s

-- name: lock_job
-- The job that is to be taken back, locked until the transaction ends.
select
    id, status, kind, replaced_by, undone_by, undone_at,
    updated_rows > 0 and not exists (
        select
        from rowlease.import_before_images as b
        where b.job_id = import_jobs.id
    ) as forgot
from rowlease.import_jobs
where id = %(id)s
for update

-- name: open_undo
-- The undo of a job that waits or runs.
select id
from rowlease.import_jobs
where parent_id = %(id)s
    and kind = 'undo'
    and status in ('pending', 'running')

-- name: submit_undo
-- A new waiting job that takes back what another did; it reads the same content with the same form.
insert into rowlease.import_jobs (
    kind, parent_id, form_name, form_version, file_name, content_hash, size_bytes, sheet, forced, batch_rows, run_ref, status,
    due_at, priority, max_attempts, created_by
)
select
    'undo', id, form_name, form_version, file_name, content_hash, size_bytes, sheet, false, batch_rows, %(run_ref)s, 'pending',
    rowlease.clock(), %(priority)s, %(max_attempts)s, session_user
from rowlease.import_jobs
where id = %(id)s
returning id

-- name: mark_undone
-- The job's rows were taken back; the same content may come again.
update rowlease.import_jobs
set undone_at = rowlease.clock(),
    undone_by = %(by)s
where id = %(id)s
    and undone_at is null
returning id

-- name: wake
-- Wakes workers that wait, when the transaction commits.
select pg_notify('rowlease', 'import_jobs')

-- name: history
-- A job with all that it hangs on: upwards to the first one, downwards to corrections and undos, oldest first.
with recursive above as (
    select id, parent_id
    from rowlease.import_jobs
    where id = %(id)s
    union all
    select j.id, j.parent_id
    from rowlease.import_jobs as j
    join above as a
        on j.id = a.parent_id
),
chain as (
    select id
    from above
    where parent_id is null
    union all
    select j.id
    from rowlease.import_jobs as j
    join chain as c
        on j.parent_id = c.id
)
select s.*
from rowlease.import_jobs_seen as s
join chain as c
    on c.id = s.id
order by s.id

-- name: imports_of_chain
-- The other imports that a job hangs on, upwards and downwards, whose rows count.
with recursive above as (
    select id, parent_id
    from rowlease.import_jobs
    where id = %(id)s
    union all
    select j.id, j.parent_id
    from rowlease.import_jobs as j
    join above as a
        on j.id = a.parent_id
),
chain as (
    select id
    from above
    where parent_id is null
    union all
    select j.id
    from rowlease.import_jobs as j
    join chain as c
        on j.parent_id = c.id
)
select j.id
from rowlease.import_jobs as j
join chain as c
    on c.id = j.id
where j.kind = 'import'
    and j.id <> %(id)s
    and j.undone_at is null
    and j.replaced_by is null
order by j.id

-- name: corrected_by_stamp
-- The import whose faults a workbook shows, when it is of this database and this form, and its rows count.
select id
from rowlease.import_jobs
where id = %(id)s
    and form_name = %(form_name)s
    and content_hash = %(content_hash)s
    and kind = 'import'
    and status in ('success', 'partial_success', 'failed', 'cancelled')
    and undone_at is null
    and replaced_by is null

-- name: failed_rows
-- The rows of a job that have faults.
select distinct source_row
from rowlease.import_row_faults
where job_id = %(id)s
order by source_row

-- name: corrected_rows
-- The failed rows of a job that other jobs have corrected.
select in_row
from rowlease.import_row_matches
where kind = 'corrects'
    and in_job = %(id)s
    and job_id <> %(by)s

-- name: forget_matches
-- What a job found out about its rows is found out anew, or is no more.
delete from rowlease.import_row_matches
where job_id = %(id)s

-- name: forget_left
-- Which rows were left is needed until all are dealt with; which failed rows were corrected stays known.
delete from rowlease.import_row_matches
where job_id = %(id)s
    and kind <> 'corrects'

-- name: matches
-- What is known of rows of a job's sheet.
select source_row, kind
from rowlease.import_row_matches
where job_id = %(id)s
    and source_row between %(first)s and %(last)s

-- name: has_moved
-- Whether rows of a sheet that was sent again stand elsewhere than in the job they came with.
select exists (
    select
    from rowlease.import_row_matches
    where job_id = %(id)s
        and in_job = %(parent)s
        and kind = 'left'
        and in_row <> source_row
) as moved

-- name: add_correction
-- A failed row of another job has come right; nothing comes back when it had come before.
insert into rowlease.import_row_matches (job_id, source_row, kind, in_job, in_row)
values (%(id)s, %(source_row)s, 'corrects', %(parent)s, %(in_row)s)
on conflict do nothing
returning source_row
