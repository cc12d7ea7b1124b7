-- Import jobs, their forms, attempts and faults.
-- Lock order: the job row first (by fence), then the advisory lock of the target table, then the target table.
-- Submitting takes the advisory lock of a form's name and content before it looks, so that two submissions of one file make one job.

-- name: form_by_digest
-- The stored version of a form with this digest.
select name, version, enabled
from rowlease.forms
where name = %(name)s
    and digest = %(digest)s

-- name: lock_form
-- Serializes the storing of versions of one form, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('rowlease form ' || %(name)s, 0))

-- name: store_form
-- Stores the next version of a form; a disabled form stays disabled.
insert into rowlease.forms (name, version, digest, definition, enabled)
select
    %(name)s,
    coalesce(max(version), 0) + 1,
    %(digest)s,
    %(definition)s,
    coalesce(bool_and(enabled), true)
from rowlease.forms
where name = %(name)s
returning name, version, enabled

-- name: form_definition
-- One version of a form, as it was stored.
select name, version, digest, definition, enabled
from rowlease.forms
where name = %(name)s
    and version = %(version)s

-- name: forms
-- The newest version of every form.
select distinct on (name) name, version, digest, definition, enabled, created_at
from rowlease.forms
order by name, version desc

-- name: enable_form
-- Lets a form take imports, or not; jobs that were submitted before go on.
update rowlease.forms
set enabled = %(enabled)s
where name = %(name)s
returning version

-- name: lock_content
-- Serializes submissions of one content into one form, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('rowlease import ' || %(form_name)s || ' ' || %(content_hash)s, 0))

-- name: same_content
-- Earlier jobs of the same content in the same form, the one that counts first: with rows, then open, then the oldest.
select *, (status in ('pending', 'running')) as open
from rowlease.import_jobs_seen
where form_name = %(form_name)s
    and content_hash = %(content_hash)s
    and replaced_by is null
    and undone_at is null
    and kind = 'import'
order by
    (status in ('success', 'partial_success')) desc,
    (status in ('pending', 'running')) desc,
    id

-- name: lock_key
-- Serializes submissions under one key, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('rowlease key ' || %(key)s, 0))

-- name: by_key
-- The job that a submission under this key made or found.
select j.*
from rowlease.import_keys as k
join rowlease.import_jobs_seen as j
    on j.id = k.job_id
where k.key = %(key)s

-- name: keep_key
-- Remembers the key of a submission, also of one that found its job.
insert into rowlease.import_keys (key, job_id)
values (%(key)s, %(id)s)

-- name: submit
-- A new waiting job.
insert into rowlease.import_jobs (
    form_name, form_version, file_name, content_hash, size_bytes, sheet, forced, create_table, batch_rows,
    replaces, run_ref, parent_id, only_changes, status, due_at, priority, max_attempts, created_by
)
values (
    %(form_name)s, %(form_version)s, %(file_name)s, %(content_hash)s, %(size_bytes)s, %(sheet)s, %(forced)s,
    %(create_table)s, %(batch_rows)s, %(replaces)s, %(run_ref)s, %(parent_id)s, %(only_changes)s, 'pending',
    rowlease.clock(), %(priority)s, %(max_attempts)s, session_user
)
returning id

-- name: take_up
-- A failed or cancelled job waits again, from its cursor, with all its attempts.
update rowlease.import_jobs
set status = 'pending',
    due_at = rowlease.clock(),
    finished_at = null,
    attempt_count = 0,
    last_error = null,
    reason = null,
    create_table = create_table or %(create_table)s,
    batch_rows = coalesce(%(batch_rows)s, batch_rows),
    run_ref = coalesce(%(run_ref)s, run_ref),
    replaces = replaces || %(replaces)s::bigint[]
where id = %(id)s
    and status in ('failed', 'cancelled')
    and total_rows is null
    and replaced_by is null
    and undone_at is null
returning id

-- name: wake
-- Wakes workers that wait; sent once per submission, and only when the transaction commits.
select pg_notify('rowlease', 'import_jobs')

-- name: job
-- One job as it may be seen (no holder).
select *
from rowlease.import_jobs_seen
where id = %(id)s

-- name: jobs
-- The newest jobs, newest first.
select *
from rowlease.import_jobs_seen
where (%(form_name)s::text is null or form_name = %(form_name)s)
    and (%(status)s::text is null or status = %(status)s)
    and (%(since)s::timestamptz is null or created_at >= %(since)s)
order by id desc
limit %(limit)s

-- name: definition
-- What a holder needs to run the job.
select
    j.form_name, j.form_version, j.file_name, j.content_hash, j.size_bytes, j.sheet, j.create_table, j.batch_rows,
    j.replaces, j.success_rows, j.failed_rows, j.skipped_rows, f.definition, f.digest, j.kind, j.parent_id, j.only_changes
from rowlease.import_jobs as j
join rowlease.forms as f
    on f.name = j.form_name
    and f.version = j.form_version
where j.id = %(id)s
    and j.fence = %(fence)s
    and j.status = 'running'

-- name: begin_attempt
-- One row per claim; an earlier attempt that never ended was cut off.
with cut_off as (
    update rowlease.import_attempts
    set ended = rowlease.clock(),
        how = 'interrupted'
    where job_id = %(id)s
        and ended is null
)
insert into rowlease.import_attempts (job_id, fence, run_ref)
select id, fence, coalesce(%(run_ref)s, run_ref)
from rowlease.import_jobs
where id = %(id)s

-- name: run_by
-- The job carries the reference of the run that works on it.
update rowlease.import_jobs
set run_ref = %(run_ref)s
where id = %(id)s
    and fence = %(fence)s
    and status = 'running'
returning id

-- name: end_attempt
-- The open attempts of a job end, and how.
update rowlease.import_attempts
set ended = rowlease.clock(),
    how = %(how)s
where job_id = %(id)s
    and ended is null

-- name: attempts
-- The attempts of a job, oldest first.
select fence, run_ref, began, ended, how
from rowlease.import_attempts
where job_id = %(id)s
order by fence

-- name: add_fault
-- One bad cell. The same cell twice is a broken cursor, and refused by the key.
insert into rowlease.import_row_faults (job_id, source_row, column_name, rule, value, message, position)
values (%(job_id)s, %(source_row)s, %(column)s, %(rule)s, %(value)s, %(message)s, %(position)s)

-- name: copy_faults
-- Many bad cells at once.
copy rowlease.import_row_faults (job_id, source_row, column_name, rule, value, message, position) from stdin

-- name: copy_faults_csv
-- Many bad cells at once, as CSV: an empty field is null, "" is an empty text.
copy rowlease.import_row_faults (job_id, source_row, column_name, rule, value, message, position)
from stdin with (format csv, encoding 'utf8')

-- name: faults
-- The faults of a job in sheet order.
select source_row, column_name as "column", rule, value, message
from rowlease.import_row_faults
where job_id = %(id)s
order by source_row, position, column_name
limit %(limit)s

-- name: faults_by_rule
-- How many bad cells broke which rule.
select rule, count(*) as faults
from rowlease.import_row_faults
where job_id = %(id)s
group by rule
order by count(*) desc, rule

-- name: delete_faults
-- The faults of a refused workbook go with its rows.
delete from rowlease.import_row_faults
where job_id = %(id)s

-- name: move_cursor
-- The cursor moves in the transaction that wrote the rows, and only from where the batch began.
update rowlease.import_jobs
set success_rows = success_rows + %(success)s,
    failed_rows = failed_rows + %(failed)s,
    skipped_rows = skipped_rows + %(skipped)s,
    updated_rows = updated_rows + %(updated)s
where id = %(id)s
    and fence = %(fence)s
    and status = 'running'
    and success_rows + failed_rows + skipped_rows = %(cursor)s
returning success_rows, failed_rows, skipped_rows

-- name: finish
-- The job ends as its counts say: no failed row is success, no good row is failed, else partial_success; no rows at all is success.
update rowlease.import_jobs
set status = case
        when failed_rows = 0 then 'success'
        when success_rows + skipped_rows = 0 then 'failed'
        else 'partial_success'
    end,
    last_error = case
        when failed_rows > 0 and success_rows + skipped_rows = 0
            then format('no row could be imported: all %%s rows have faults', failed_rows)
    end,
    total_rows = success_rows + failed_rows + skipped_rows,
    left_out = %(left_out)s,
    fence = fence + 1,
    holder = null,
    lease_until = null,
    due_at = null,
    finished_at = rowlease.clock()
where id = %(id)s
    and fence = %(fence)s
    and status = 'running'
returning status

-- name: refuse
-- The job fails as a whole and keeps no row: all counts are zero. total_rows is set only when the sheet was read to its end.
update rowlease.import_jobs
set status = 'failed',
    reason = %(reason)s,
    last_error = %(error)s,
    total_rows = %(total_rows)s,
    left_out = %(left_out)s,
    success_rows = 0,
    failed_rows = 0,
    skipped_rows = 0,
    updated_rows = 0,
    fence = fence + 1,
    holder = null,
    lease_until = null,
    due_at = null,
    finished_at = rowlease.clock()
where id = %(id)s
    and fence = %(fence)s
    and status = 'running'
returning status

-- name: cancel
-- Takes the lease away from whoever holds it; rows that were committed stay.
update rowlease.import_jobs
set status = 'cancelled',
    last_error = %(error)s,
    fence = fence + 1,
    holder = null,
    lease_until = null,
    due_at = null,
    finished_at = rowlease.clock()
where id = %(id)s
    and status in ('pending', 'running')
returning id

-- name: to_replace
-- The jobs whose rows this job takes the place of, with the form that says where those rows are.
select j.id, f.definition
from rowlease.import_jobs as j
join rowlease.forms as f
    on f.name = j.form_name
    and f.version = j.form_version
where j.id = any(%(ids)s)
    and j.replaced_by is null
order by j.id
for update of j

-- name: mark_replaced
-- A replaced job keeps its counts as history and no longer counts as sent before.
update rowlease.import_jobs
set replaced_by = %(id)s
where id = %(old)s
    and replaced_by is null
returning id

-- name: statuses
-- Which of these jobs are still open.
select id
from rowlease.import_jobs
where id = any(%(ids)s)
    and status in ('pending', 'running')

-- name: due
-- How many jobs could be claimed now.
select count(*) as due
from rowlease.import_jobs
where (status = 'pending' and due_at <= rowlease.clock())
    or (status = 'running' and lease_until < rowlease.clock())

-- name: next_moment
-- The earliest moment at which a job becomes due or a lease runs out, as seconds from now; null when there is none.
select extract(epoch from least(
    (select min(due_at) from rowlease.import_jobs where status = 'pending'),
    (select min(lease_until) from rowlease.import_jobs where status = 'running')
) - rowlease.clock())::float8 as seconds

-- name: listen
-- A worker hears of new jobs at once.
listen rowlease

-- name: announcement
-- What is announced of a job that has ended; its fence tells this end from an earlier one.
select
    id as job_id, fence, form_name as form, form_version, file_name, status, total_rows, success_rows, failed_rows,
    skipped_rows, reason, last_error as error
from rowlease.import_jobs_seen
where id = %(id)s
