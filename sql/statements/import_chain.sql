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
select id, status, kind, replaced_by, undone_by, undone_at
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
