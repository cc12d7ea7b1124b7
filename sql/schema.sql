-- The schema as the migrations make it, read back from the catalogs: `python -m importer.db.snapshot` writes this file.

CREATE OR REPLACE FUNCTION rowlease.clock()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (statement_timestamp() + COALESCE((NULLIF(current_setting('rowlease.clock_offset'::text, true), ''::text))::interval, '00:00:00'::interval));

create table rowlease.forms (
    name text not null,
    version integer not null,
    digest text not null,
    definition jsonb not null,
    enabled boolean not null default true,
    created_by text not null default CURRENT_USER,
    created_at timestamp with time zone not null default rowlease.clock(),
    constraint forms_pkey PRIMARY KEY (name, version),
    constraint forms_definition_check CHECK ((jsonb_typeof(definition) = 'object'::text)),
    constraint forms_digest_check CHECK ((digest ~ '^[0-9a-f]{64}$'::text)),
    constraint forms_name_check CHECK ((name <> ''::text)),
    constraint forms_name_digest_key UNIQUE (name, digest),
    constraint forms_version_check CHECK ((version > 0))
);

create table rowlease.import_attempts (
    job_id bigint not null,
    fence bigint not null,
    run_ref text,
    began timestamp with time zone not null default rowlease.clock(),
    ended timestamp with time zone,
    how text,
    constraint import_attempts_pkey PRIMARY KEY (job_id, fence),
    constraint import_attempts_check CHECK (((ended IS NULL) = (how IS NULL))),
    constraint import_attempts_how_check CHECK ((how = ANY (ARRAY['finished'::text, 'refused'::text, 'failed'::text, 'handed_back'::text, 'retry'::text, 'cancelled'::text, 'interrupted'::text]))),
    constraint import_attempts_job_id_fkey FOREIGN KEY (job_id) REFERENCES rowlease.import_jobs(id) ON DELETE CASCADE
);
CREATE INDEX import_attempts_open ON rowlease.import_attempts USING btree (job_id) WHERE (ended IS NULL);

create table rowlease.import_jobs (
    id bigint not null generated always as identity,
    status text not null default 'pending'::text,
    due_at timestamp with time zone,
    priority smallint not null default 2,
    fence bigint not null default 0,
    holder text,
    lease_until timestamp with time zone,
    attempt_count integer not null default 0,
    max_attempts integer not null default 5,
    last_heartbeat_at timestamp with time zone,
    last_error text,
    created_by text,
    created_at timestamp with time zone not null default rowlease.clock(),
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    form_name text not null,
    form_version integer not null,
    file_name text not null,
    content_hash text not null,
    size_bytes bigint not null,
    sheet text,
    forced boolean not null default false,
    submit_key text,
    create_table boolean not null default false,
    batch_rows integer,
    replaces bigint[] not null default '{}'::bigint[],
    replaced_by bigint,
    run_ref text,
    total_rows bigint,
    success_rows bigint not null default 0,
    failed_rows bigint not null default 0,
    skipped_rows bigint not null default 0,
    reason text,
    left_out jsonb,
    constraint import_jobs_pkey PRIMARY KEY (id),
    constraint import_jobs_batch_rows_check CHECK ((batch_rows > 0)),
    constraint import_jobs_content_hash_check CHECK ((content_hash ~ '^[0-9a-f]{64}$'::text)),
    constraint import_jobs_end_has_counts CHECK (((status <> ALL (ARRAY['success'::text, 'partial_success'::text])) OR ((total_rows IS NOT NULL) AND (total_rows = ((success_rows + failed_rows) + skipped_rows))))),
    constraint import_jobs_ended_has_time CHECK (((status = ANY (ARRAY['success'::text, 'partial_success'::text, 'failed'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
    constraint import_jobs_failed_rows_check CHECK ((failed_rows >= 0)),
    constraint import_jobs_form_name_form_version_fkey FOREIGN KEY (form_name, form_version) REFERENCES rowlease.forms(name, version),
    constraint import_jobs_held_has_holder CHECK (((status = 'running'::text) = (holder IS NOT NULL))),
    constraint import_jobs_replaced_by_fkey FOREIGN KEY (replaced_by) REFERENCES rowlease.import_jobs(id),
    constraint import_jobs_size_bytes_check CHECK ((size_bytes >= 0)),
    constraint import_jobs_skipped_rows_check CHECK ((skipped_rows >= 0)),
    constraint import_jobs_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'success'::text, 'partial_success'::text, 'failed'::text, 'cancelled'::text]))),
    constraint import_jobs_success_has_no_faults CHECK (((status <> 'success'::text) OR (failed_rows = 0))),
    constraint import_jobs_success_rows_check CHECK ((success_rows >= 0)),
    constraint import_jobs_total_rows_check CHECK ((total_rows >= 0)),
    constraint import_jobs_waiting_has_due_time CHECK (((status <> 'pending'::text) OR (due_at IS NOT NULL))),
    constraint leased_attempts_not_negative CHECK ((attempt_count >= 0)),
    constraint leased_error_is_short CHECK ((char_length(last_error) <= 2000)),
    constraint leased_fence_not_negative CHECK ((fence >= 0)),
    constraint leased_holder_has_lease CHECK (((holder IS NULL) = (lease_until IS NULL))),
    constraint leased_max_attempts_positive CHECK ((max_attempts > 0)),
    constraint leased_priority_known CHECK (((priority >= 0) AND (priority <= 3)))
);
CREATE INDEX import_jobs_content ON rowlease.import_jobs USING btree (form_name, content_hash);
CREATE INDEX import_jobs_created ON rowlease.import_jobs USING btree (created_at DESC, id DESC);
CREATE UNIQUE INDEX import_jobs_identity ON rowlease.import_jobs USING btree (content_hash, form_name, form_version, COALESCE(sheet, ''::text)) WHERE ((NOT forced) AND (replaced_by IS NULL));
CREATE INDEX import_jobs_run_out ON rowlease.import_jobs USING btree (lease_until) WHERE (status = 'running'::text);
CREATE UNIQUE INDEX import_jobs_submit_key ON rowlease.import_jobs USING btree (submit_key);
CREATE INDEX import_jobs_waiting ON rowlease.import_jobs USING btree (priority, due_at, created_at) WHERE (status = 'pending'::text);
comment on column rowlease.import_jobs.due_at is 'When the row may be claimed; null: nothing to do.';
comment on column rowlease.import_jobs.priority is '0 first to 3 last.';
comment on column rowlease.import_jobs.fence is 'Rises whenever the right to the row changes; every write of a holder names it.';
comment on column rowlease.import_jobs.holder is 'Who holds the lease; never leaves the durable wing.';
comment on column rowlease.import_jobs.lease_until is 'When others may claim the row although it is held.';
comment on column rowlease.import_jobs.attempt_count is 'Claims that ended in a crash or an error, the running one included.';
comment on column rowlease.import_jobs.started_at is 'When the row was claimed first.';

create table rowlease.import_row_faults (
    job_id bigint not null,
    source_row bigint not null,
    column_name text not null,
    rule text not null,
    value text,
    message text not null,
    position smallint not null default 0,
    constraint import_row_faults_pkey PRIMARY KEY (job_id, source_row, column_name),
    constraint import_row_faults_job_id_fkey FOREIGN KEY (job_id) REFERENCES rowlease.import_jobs(id) ON DELETE CASCADE,
    constraint import_row_faults_rule_check CHECK ((rule <> ''::text)),
    constraint import_row_faults_source_row_check CHECK ((source_row > 0))
);

create table rowlease.leased (
    id bigint not null generated always as identity,
    status text not null,
    due_at timestamp with time zone,
    priority smallint not null default 2,
    fence bigint not null default 0,
    holder text,
    lease_until timestamp with time zone,
    attempt_count integer not null default 0,
    max_attempts integer not null default 5,
    last_heartbeat_at timestamp with time zone,
    last_error text,
    created_by text,
    created_at timestamp with time zone not null default rowlease.clock(),
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    constraint leased_pkey PRIMARY KEY (id),
    constraint leased_attempts_not_negative CHECK ((attempt_count >= 0)),
    constraint leased_error_is_short CHECK ((char_length(last_error) <= 2000)),
    constraint leased_fence_not_negative CHECK ((fence >= 0)),
    constraint leased_holder_has_lease CHECK (((holder IS NULL) = (lease_until IS NULL))),
    constraint leased_max_attempts_positive CHECK ((max_attempts > 0)),
    constraint leased_priority_known CHECK (((priority >= 0) AND (priority <= 3)))
);
comment on table rowlease.leased is 'Template of leased tables; holds no rows.';
comment on column rowlease.leased.due_at is 'When the row may be claimed; null: nothing to do.';
comment on column rowlease.leased.priority is '0 first to 3 last.';
comment on column rowlease.leased.fence is 'Rises whenever the right to the row changes; every write of a holder names it.';
comment on column rowlease.leased.holder is 'Who holds the lease; never leaves the durable wing.';
comment on column rowlease.leased.lease_until is 'When others may claim the row although it is held.';
comment on column rowlease.leased.attempt_count is 'Claims that ended in a crash or an error, the running one included.';
comment on column rowlease.leased.started_at is 'When the row was claimed first.';

create table rowlease.migrations (
    version integer not null,
    name text not null,
    checksum text not null,
    applied_at timestamp with time zone not null default statement_timestamp(),
    constraint migrations_pkey PRIMARY KEY (version)
);

create view rowlease.import_jobs_seen as
 SELECT id,
    status,
    due_at,
    priority,
    fence,
    lease_until,
    attempt_count,
    max_attempts,
    last_heartbeat_at,
    last_error,
    created_by,
    created_at,
    started_at,
    finished_at,
    form_name,
    form_version,
    file_name,
    content_hash,
    size_bytes,
    sheet,
    forced,
    submit_key,
    create_table,
    batch_rows,
    replaces,
    replaced_by,
    run_ref,
    total_rows,
    success_rows,
    failed_rows,
    skipped_rows,
    reason,
    left_out
   FROM rowlease.import_jobs;
