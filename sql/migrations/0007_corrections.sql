-- What an import changed of rows that were there: kept, so that it can be taken back. And how jobs hang together.

alter table rowlease.import_jobs
    add column kind text not null default 'import',
    add column parent_id bigint references rowlease.import_jobs (id),
    add column only_changes boolean not null default false,     -- rows that are in the table as they are, are left
    add column updated_rows bigint not null default 0,          -- of the success rows: rows that were there and changed
    add column undone_at timestamptz,                           -- its rows were taken back
    add column undone_by bigint references rowlease.import_jobs (id),
    add constraint import_jobs_kind_known check (kind in ('import', 'undo')),
    add constraint import_jobs_undo_has_parent check (kind <> 'undo' or parent_id is not null),
    add constraint import_jobs_updates_are_successes check (updated_rows between 0 and success_rows),
    add constraint import_jobs_undone_by_a_job check ((undone_at is null) = (undone_by is null));

create index import_jobs_parent on rowlease.import_jobs (parent_id) where parent_id is not null;

-- One undo of a job at a time; one that failed may be tried anew.
create unique index import_jobs_undo on rowlease.import_jobs (parent_id) where kind = 'undo' and status in ('pending', 'running');

-- An undo has the content of the job it takes back, and is no second import of it; what was undone may come again.
drop index rowlease.import_jobs_identity;
create unique index import_jobs_identity on rowlease.import_jobs (content_hash, form_name, form_version, coalesce(sheet, ''))
    where not forced and replaced_by is null and undone_at is null and kind = 'import';

-- One row per row that an import updated: what it held before in the form's columns, and what it was given.
create table rowlease.import_before_images (
    job_id bigint not null references rowlease.import_jobs (id) on delete cascade,
    source_row bigint not null check (source_row > 0),          -- of the sheet that brought the change
    row_key jsonb not null,                                     -- the values of the form's key columns
    before jsonb not null,
    after jsonb not null,
    primary key (job_id, source_row)
);

comment on table rowlease.import_before_images is 'What rows held before an import updated them; needed to take the import back.';

-- A job as anybody may see it: everything but who holds it.
create or replace view rowlease.import_jobs_seen as
select
    id, status, due_at, priority, fence, lease_until, attempt_count, max_attempts, last_heartbeat_at, last_error,
    created_by, created_at, started_at, finished_at,
    form_name, form_version, file_name, content_hash, size_bytes, sheet, forced, create_table, batch_rows,
    replaces, replaced_by, run_ref, total_rows, success_rows, failed_rows, skipped_rows, reason, left_out,
    kind, parent_id, only_changes, updated_rows, undone_at, undone_by
from rowlease.import_jobs;
