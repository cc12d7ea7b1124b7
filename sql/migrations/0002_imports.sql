-- Forms, import jobs, their attempts and the faults of their rows.

-- A form as data. A version is never changed: a form that differs gets the next number, one that came before keeps its own.
create table rowlease.forms (
    name text not null check (name <> ''),
    version integer not null check (version > 0),
    digest text not null check (digest ~ '^[0-9a-f]{64}$'),
    definition jsonb not null check (jsonb_typeof(definition) = 'object'),
    enabled boolean not null default true,
    created_by text not null default current_user,
    created_at timestamptz not null default rowlease.clock(),
    primary key (name, version),
    unique (name, digest)
);

-- One workbook into one form. The cursor is success_rows + failed_rows + skipped_rows.
-- Rows are never pruned: they are the memory that knows a workbook again.
create table rowlease.import_jobs (
    like rowlease.leased including all,
    form_name text not null,
    form_version integer not null,
    file_name text not null,
    content_hash text not null check (content_hash ~ '^[0-9a-f]{64}$'),
    size_bytes bigint not null check (size_bytes >= 0),
    sheet text,                                     -- instead of the form's own sheet
    forced boolean not null default false,          -- made beside an earlier job of the same identity
    create_table boolean not null default false,
    batch_rows integer check (batch_rows > 0),
    replaces bigint[] not null default '{}',        -- jobs whose rows the first transaction removes
    replaced_by bigint references rowlease.import_jobs (id),
    run_ref text,                                   -- who runs it outside, a Dagster run id
    total_rows bigint check (total_rows >= 0),      -- known once the sheet was read to its end
    success_rows bigint not null default 0 check (success_rows >= 0),
    failed_rows bigint not null default 0 check (failed_rows >= 0),
    skipped_rows bigint not null default 0 check (skipped_rows >= 0),
    reason text,                                    -- why the workbook was refused, one of a closed set of words
    left_out jsonb,                                 -- what was not read and why
    foreign key (form_name, form_version) references rowlease.forms (name, version),
    constraint import_jobs_status_known check (status in ('pending', 'running', 'success', 'partial_success', 'failed', 'cancelled')),
    constraint import_jobs_held_has_holder check ((status = 'running') = (holder is not null)),
    constraint import_jobs_ended_has_time check ((status in ('success', 'partial_success', 'failed', 'cancelled')) = (finished_at is not null)),
    constraint import_jobs_waiting_has_due_time check (status <> 'pending' or due_at is not null),
    constraint import_jobs_end_has_counts check (
        status not in ('success', 'partial_success')
        or (total_rows is not null and total_rows = success_rows + failed_rows + skipped_rows)
    ),
    constraint import_jobs_success_has_no_faults check (status <> 'success' or failed_rows = 0)
);

alter table rowlease.import_jobs alter column status set default 'pending';

-- The claim's two arms.
create index import_jobs_waiting on rowlease.import_jobs (priority, due_at, created_at) where status = 'pending';
create index import_jobs_run_out on rowlease.import_jobs (lease_until) where status = 'running';

-- The same content, form version and sheet is one job, unless one was forced beside it or its rows were replaced.
create unique index import_jobs_identity on rowlease.import_jobs (content_hash, form_name, form_version, coalesce(sheet, ''))
    where not forced and replaced_by is null;
create index import_jobs_content on rowlease.import_jobs (form_name, content_hash);
create index import_jobs_created on rowlease.import_jobs (created_at desc, id desc);

-- Callers' own names for submissions; several may name one job, as several submissions of one content do.
create table rowlease.import_keys (
    key text primary key check (key <> ''),
    job_id bigint not null references rowlease.import_jobs (id) on delete cascade,
    created_at timestamptz not null default rowlease.clock()
);

create index import_keys_job on rowlease.import_keys (job_id);

-- One row per claim of a job; ended and how stay null while it runs.
create table rowlease.import_attempts (
    job_id bigint not null references rowlease.import_jobs (id) on delete cascade,
    fence bigint not null,
    run_ref text,
    began timestamptz not null default rowlease.clock(),
    ended timestamptz,
    how text check (how in ('finished', 'refused', 'failed', 'handed_back', 'retry', 'cancelled', 'interrupted')),
    primary key (job_id, fence),
    check ((ended is null) = (how is null))
);

create index import_attempts_open on rowlease.import_attempts (job_id) where ended is null;

-- One row per bad cell (a row that PostgreSQL refused as a whole has column '').
create table rowlease.import_row_faults (
    job_id bigint not null references rowlease.import_jobs (id) on delete cascade,
    source_row bigint not null check (source_row > 0),
    column_name text not null,
    rule text not null check (rule <> ''),
    value text,
    message text not null,
    position smallint not null default 0,           -- of the column in the form
    primary key (job_id, source_row, column_name)
);

-- A job as anybody may see it: everything but who holds it.
create view rowlease.import_jobs_seen as
select
    id, status, due_at, priority, fence, lease_until, attempt_count, max_attempts, last_heartbeat_at, last_error,
    created_by, created_at, started_at, finished_at,
    form_name, form_version, file_name, content_hash, size_bytes, sheet, forced, create_table, batch_rows,
    replaces, replaced_by, run_ref, total_rows, success_rows, failed_rows, skipped_rows, reason, left_out
from rowlease.import_jobs;
