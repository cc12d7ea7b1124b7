-- The schema as the migrations make it, read back from the catalogs: `python -m importer.db.snapshot` writes this file.

CREATE OR REPLACE FUNCTION rowlease.clock()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (statement_timestamp() + COALESCE((NULLIF(current_setting('rowlease.clock_offset'::text, true), ''::text))::interval, '00:00:00'::interval));

create table rowlease.approvals (
    id bigint not null generated always as identity,
    instance_id bigint not null,
    token integer not null,
    node text not null,
    status text not null default 'open'::text,
    who text[] not null default '{}'::text[],
    question text not null,
    choices text[] not null,
    asked_at timestamp with time zone not null,
    due_at timestamp with time zone,
    ended_at timestamp with time zone,
    answered_by text,
    choice text,
    note text,
    constraint approvals_pkey PRIMARY KEY (id),
    constraint approvals_answer_is_whole CHECK (((status = 'answered'::text) = ((answered_by IS NOT NULL) AND (choice IS NOT NULL)))),
    constraint approvals_choice_is_one CHECK (((choice IS NULL) OR (choice = ANY (choices)))),
    constraint approvals_choices_check CHECK ((cardinality(choices) > 0)),
    constraint approvals_ended_has_time CHECK (((status = 'open'::text) = (ended_at IS NULL))),
    constraint approvals_instance_id_fkey FOREIGN KEY (instance_id) REFERENCES rowlease.workflow_instances(id) ON DELETE CASCADE,
    constraint approvals_instance_id_token_fkey FOREIGN KEY (instance_id, token) REFERENCES rowlease.workflow_tokens(instance_id, number) ON DELETE CASCADE,
    constraint approvals_note_check CHECK ((char_length(note) <= 10000)),
    constraint approvals_one_per_token UNIQUE (instance_id, token),
    constraint approvals_status_known CHECK ((status = ANY (ARRAY['open'::text, 'answered'::text, 'timed_out'::text, 'cancelled'::text])))
);
CREATE INDEX approvals_open ON rowlease.approvals USING btree (id) WHERE (status = 'open'::text);

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

create table rowlease.import_addresses (
    address text not null,
    form_name text not null,
    etag text,
    last_modified text,
    size_bytes bigint,
    job_id bigint not null,
    seen_at timestamp with time zone not null default rowlease.clock(),
    constraint import_addresses_pkey PRIMARY KEY (address, form_name),
    constraint import_addresses_job_id_fkey FOREIGN KEY (job_id) REFERENCES rowlease.import_jobs(id) ON DELETE CASCADE
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
CREATE INDEX import_attempts_run ON rowlease.import_attempts USING btree (run_ref, began) WHERE (run_ref IS NOT NULL);

create table rowlease.import_before_images (
    job_id bigint not null,
    source_row bigint not null,
    row_key jsonb not null,
    before jsonb not null,
    after jsonb not null,
    constraint import_before_images_pkey PRIMARY KEY (job_id, source_row),
    constraint import_before_images_job_id_fkey FOREIGN KEY (job_id) REFERENCES rowlease.import_jobs(id) ON DELETE CASCADE,
    constraint import_before_images_source_row_check CHECK ((source_row > 0))
);
comment on table rowlease.import_before_images is 'What rows held before an import updated them; needed to take the import back.';

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
    kind text not null default 'import'::text,
    parent_id bigint,
    only_changes boolean not null default false,
    updated_rows bigint not null default 0,
    undone_at timestamp with time zone,
    undone_by bigint,
    constraint import_jobs_pkey PRIMARY KEY (id),
    constraint import_jobs_batch_rows_check CHECK ((batch_rows > 0)),
    constraint import_jobs_content_hash_check CHECK ((content_hash ~ '^[0-9a-f]{64}$'::text)),
    constraint import_jobs_end_has_counts CHECK (((status <> ALL (ARRAY['success'::text, 'partial_success'::text])) OR ((total_rows IS NOT NULL) AND (total_rows = ((success_rows + failed_rows) + skipped_rows))))),
    constraint import_jobs_ended_has_time CHECK (((status = ANY (ARRAY['success'::text, 'partial_success'::text, 'failed'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
    constraint import_jobs_failed_rows_check CHECK ((failed_rows >= 0)),
    constraint import_jobs_form_name_form_version_fkey FOREIGN KEY (form_name, form_version) REFERENCES rowlease.forms(name, version),
    constraint import_jobs_held_has_holder CHECK (((status = 'running'::text) = (holder IS NOT NULL))),
    constraint import_jobs_kind_known CHECK ((kind = ANY (ARRAY['import'::text, 'undo'::text]))),
    constraint import_jobs_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES rowlease.import_jobs(id),
    constraint import_jobs_replaced_by_fkey FOREIGN KEY (replaced_by) REFERENCES rowlease.import_jobs(id),
    constraint import_jobs_size_bytes_check CHECK ((size_bytes >= 0)),
    constraint import_jobs_skipped_rows_check CHECK ((skipped_rows >= 0)),
    constraint import_jobs_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'success'::text, 'partial_success'::text, 'failed'::text, 'cancelled'::text]))),
    constraint import_jobs_success_has_no_faults CHECK (((status <> 'success'::text) OR (failed_rows = 0))),
    constraint import_jobs_success_rows_check CHECK ((success_rows >= 0)),
    constraint import_jobs_total_rows_check CHECK ((total_rows >= 0)),
    constraint import_jobs_undo_has_parent CHECK (((kind <> 'undo'::text) OR (parent_id IS NOT NULL))),
    constraint import_jobs_undone_by_a_job CHECK (((undone_at IS NULL) = (undone_by IS NULL))),
    constraint import_jobs_undone_by_fkey FOREIGN KEY (undone_by) REFERENCES rowlease.import_jobs(id),
    constraint import_jobs_updates_are_successes CHECK (((updated_rows >= 0) AND (updated_rows <= success_rows))),
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
CREATE UNIQUE INDEX import_jobs_identity ON rowlease.import_jobs USING btree (content_hash, form_name, form_version, COALESCE(sheet, ''::text)) WHERE ((NOT forced) AND (replaced_by IS NULL) AND (undone_at IS NULL) AND (kind = 'import'::text));
CREATE INDEX import_jobs_parent ON rowlease.import_jobs USING btree (parent_id) WHERE (parent_id IS NOT NULL);
CREATE INDEX import_jobs_run_out ON rowlease.import_jobs USING btree (lease_until) WHERE (status = 'running'::text);
CREATE UNIQUE INDEX import_jobs_undo ON rowlease.import_jobs USING btree (parent_id) WHERE ((kind = 'undo'::text) AND (status = ANY (ARRAY['pending'::text, 'running'::text])));
CREATE INDEX import_jobs_waiting ON rowlease.import_jobs USING btree (priority, due_at, created_at) WHERE (status = 'pending'::text);
comment on column rowlease.import_jobs.due_at is 'When the row may be claimed; null: nothing to do.';
comment on column rowlease.import_jobs.priority is '0 first to 3 last.';
comment on column rowlease.import_jobs.fence is 'Rises whenever the right to the row changes; every write of a holder names it.';
comment on column rowlease.import_jobs.holder is 'Who holds the lease; never leaves the durable wing.';
comment on column rowlease.import_jobs.lease_until is 'When others may claim the row although it is held.';
comment on column rowlease.import_jobs.attempt_count is 'Claims that ended in a crash or an error, the running one included.';
comment on column rowlease.import_jobs.started_at is 'When the row was claimed first.';

create table rowlease.import_keys (
    key text not null,
    job_id bigint not null,
    created_at timestamp with time zone not null default rowlease.clock(),
    constraint import_keys_pkey PRIMARY KEY (key),
    constraint import_keys_job_id_fkey FOREIGN KEY (job_id) REFERENCES rowlease.import_jobs(id) ON DELETE CASCADE,
    constraint import_keys_key_check CHECK ((key <> ''::text))
);
CREATE INDEX import_keys_job ON rowlease.import_keys USING btree (job_id);

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

create table rowlease.import_row_matches (
    job_id bigint not null,
    source_row bigint not null,
    kind text not null,
    in_job bigint not null,
    in_row bigint not null,
    constraint import_row_matches_pkey PRIMARY KEY (job_id, source_row),
    constraint import_row_matches_in_job_fkey FOREIGN KEY (in_job) REFERENCES rowlease.import_jobs(id) ON DELETE CASCADE,
    constraint import_row_matches_job_id_fkey FOREIGN KEY (job_id) REFERENCES rowlease.import_jobs(id) ON DELETE CASCADE,
    constraint import_row_matches_kind_check CHECK ((kind = ANY (ARRAY['left'::text, 'changed'::text, 'corrects'::text]))),
    constraint import_row_matches_source_row_check CHECK ((source_row > 0))
);
CREATE UNIQUE INDEX import_row_matches_corrected ON rowlease.import_row_matches USING btree (in_job, in_row) WHERE (kind = 'corrects'::text);
CREATE UNIQUE INDEX import_row_matches_once ON rowlease.import_row_matches USING btree (job_id, in_job, in_row);
comment on table rowlease.import_row_matches is 'Rows of a sheet sent again: left as they are in the table, changed since, or corrections of failed rows.';

create table rowlease.import_waits (
    instance_id bigint not null,
    token integer not null,
    job_id bigint not null,
    job_fence bigint not null,
    own boolean not null,
    constraint import_waits_pkey PRIMARY KEY (instance_id, token),
    constraint import_waits_instance_id_token_fkey FOREIGN KEY (instance_id, token) REFERENCES rowlease.workflow_tokens(instance_id, number) ON DELETE CASCADE,
    constraint import_waits_job_id_fkey FOREIGN KEY (job_id) REFERENCES rowlease.import_jobs(id)
);
CREATE INDEX import_waits_job ON rowlease.import_waits USING btree (job_id);

create table rowlease.inbox_files (
    inbox text not null,
    path text not null,
    stamp text not null,
    outcome text not null default 'settling'::text,
    content_hash text,
    form_name text,
    job_id bigint,
    message text,
    forms_known text,
    seen_at timestamp with time zone not null default rowlease.clock(),
    ended_at timestamp with time zone,
    constraint inbox_files_pkey PRIMARY KEY (inbox, path, stamp),
    constraint inbox_files_content_hash_check CHECK ((content_hash ~ '^[0-9a-f]{64}$'::text)),
    constraint inbox_files_ended_has_time CHECK (((outcome = 'settling'::text) = (ended_at IS NULL))),
    constraint inbox_files_inbox_check CHECK ((inbox <> ''::text)),
    constraint inbox_files_job_id_fkey FOREIGN KEY (job_id) REFERENCES rowlease.import_jobs(id),
    constraint inbox_files_message_check CHECK ((char_length(message) <= 2000)),
    constraint inbox_files_not_taken_has_message CHECK (((outcome <> ALL (ARRAY['refused'::text, 'unmatched'::text])) OR (message IS NOT NULL))),
    constraint inbox_files_outcome_known CHECK ((outcome = ANY (ARRAY['settling'::text, 'taken'::text, 'refused'::text, 'unmatched'::text]))),
    constraint inbox_files_path_check CHECK ((path <> ''::text)),
    constraint inbox_files_stamp_check CHECK ((stamp <> ''::text)),
    constraint inbox_files_taken_has_job CHECK (((outcome = 'taken'::text) = ((job_id IS NOT NULL) AND (content_hash IS NOT NULL) AND (form_name IS NOT NULL))))
);
CREATE INDEX inbox_files_job ON rowlease.inbox_files USING btree (job_id);
comment on table rowlease.inbox_files is 'Files of the inbox as they stood, and what became of each; a file is looked at again when its stamp changes.';

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

create table rowlease.outbox_deliveries (
    message_id bigint not null,
    route text not null,
    handed_at timestamp with time zone not null default rowlease.clock(),
    constraint outbox_deliveries_pkey PRIMARY KEY (message_id, route),
    constraint outbox_deliveries_message_id_fkey FOREIGN KEY (message_id) REFERENCES rowlease.outbox_messages(id) ON DELETE CASCADE
);

create table rowlease.outbox_messages (
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
    topic text not null,
    key text not null,
    payload jsonb not null,
    constraint outbox_messages_pkey PRIMARY KEY (id),
    constraint leased_attempts_not_negative CHECK ((attempt_count >= 0)),
    constraint leased_error_is_short CHECK ((char_length(last_error) <= 2000)),
    constraint leased_fence_not_negative CHECK ((fence >= 0)),
    constraint leased_holder_has_lease CHECK (((holder IS NULL) = (lease_until IS NULL))),
    constraint leased_max_attempts_positive CHECK ((max_attempts > 0)),
    constraint leased_priority_known CHECK (((priority >= 0) AND (priority <= 3))),
    constraint outbox_messages_ended_has_time CHECK (((status = ANY (ARRAY['dispatched'::text, 'dead'::text])) = (finished_at IS NOT NULL))),
    constraint outbox_messages_held_has_holder CHECK (((status = 'delivering'::text) = (holder IS NOT NULL))),
    constraint outbox_messages_key_check CHECK ((key <> ''::text)),
    constraint outbox_messages_payload_check CHECK ((jsonb_typeof(payload) = 'object'::text)),
    constraint outbox_messages_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'delivering'::text, 'dispatched'::text, 'dead'::text]))),
    constraint outbox_messages_topic_check CHECK ((topic <> ''::text)),
    constraint outbox_messages_waiting_has_due_time CHECK (((status <> 'pending'::text) OR (due_at IS NOT NULL)))
);
CREATE INDEX outbox_messages_open ON rowlease.outbox_messages USING btree (key, id) WHERE (status = ANY (ARRAY['pending'::text, 'delivering'::text]));
CREATE INDEX outbox_messages_run_out ON rowlease.outbox_messages USING btree (lease_until) WHERE (status = 'delivering'::text);
CREATE INDEX outbox_messages_waiting ON rowlease.outbox_messages USING btree (priority, due_at, created_at) WHERE (status = 'pending'::text);
comment on column rowlease.outbox_messages.due_at is 'When the row may be claimed; null: nothing to do.';
comment on column rowlease.outbox_messages.priority is '0 first to 3 last.';
comment on column rowlease.outbox_messages.fence is 'Rises whenever the right to the row changes; every write of a holder names it.';
comment on column rowlease.outbox_messages.holder is 'Who holds the lease; never leaves the durable wing.';
comment on column rowlease.outbox_messages.lease_until is 'When others may claim the row although it is held.';
comment on column rowlease.outbox_messages.attempt_count is 'Claims that ended in a crash or an error, the running one included.';
comment on column rowlease.outbox_messages.started_at is 'When the row was claimed first.';

create table rowlease.outbox_routes (
    name text not null,
    topic text not null,
    kind text not null,
    config jsonb not null,
    created_by text not null default SESSION_USER,
    created_at timestamp with time zone not null default rowlease.clock(),
    constraint outbox_routes_pkey PRIMARY KEY (name),
    constraint outbox_routes_config_check CHECK ((jsonb_typeof(config) = 'object'::text)),
    constraint outbox_routes_kind_check CHECK ((kind = ANY (ARRAY['task'::text, 'webhook'::text]))),
    constraint outbox_routes_name_check CHECK ((name <> ''::text)),
    constraint outbox_routes_topic_check CHECK ((topic <> ''::text))
);
CREATE INDEX outbox_routes_topic ON rowlease.outbox_routes USING btree (topic);

create table rowlease.task_attempts (
    run_id bigint not null,
    fence bigint not null,
    how text not null,
    last_seen_at timestamp with time zone,
    ended_at timestamp with time zone not null default rowlease.clock(),
    error text,
    constraint task_attempts_pkey PRIMARY KEY (run_id, fence),
    constraint task_attempts_error_check CHECK ((char_length(error) <= 2000)),
    constraint task_attempts_how_known CHECK ((how = ANY (ARRAY['error'::text, 'interrupted'::text, 'asleep'::text, 'waiting'::text, 'handed_back'::text]))),
    constraint task_attempts_run_id_fkey FOREIGN KEY (run_id) REFERENCES rowlease.task_runs(id) ON DELETE CASCADE
);

create table rowlease.task_facts (
    run_id bigint not null,
    name text not null,
    payload jsonb,
    came_at timestamp with time zone not null default rowlease.clock(),
    constraint task_facts_pkey PRIMARY KEY (run_id, name),
    constraint task_facts_run_id_fkey FOREIGN KEY (run_id) REFERENCES rowlease.task_runs(id) ON DELETE CASCADE
);

create table rowlease.task_operations (
    run_id bigint not null,
    key text not null,
    attempts integer not null default 1,
    began_at timestamp with time zone not null default rowlease.clock(),
    ended_at timestamp with time zone,
    result jsonb,
    constraint task_operations_pkey PRIMARY KEY (run_id, key),
    constraint task_operations_attempts_check CHECK ((attempts > 0)),
    constraint task_operations_run_id_fkey FOREIGN KEY (run_id) REFERENCES rowlease.task_runs(id) ON DELETE CASCADE
);

create table rowlease.task_runs (
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
    task_name text not null,
    task_version integer not null,
    input jsonb not null,
    run_key text,
    trace_id text not null,
    waits_for text,
    announces boolean not null default false,
    result jsonb,
    constraint task_runs_pkey PRIMARY KEY (id),
    constraint leased_attempts_not_negative CHECK ((attempt_count >= 0)),
    constraint leased_error_is_short CHECK ((char_length(last_error) <= 2000)),
    constraint leased_fence_not_negative CHECK ((fence >= 0)),
    constraint leased_holder_has_lease CHECK (((holder IS NULL) = (lease_until IS NULL))),
    constraint leased_max_attempts_positive CHECK ((max_attempts > 0)),
    constraint leased_priority_known CHECK (((priority >= 0) AND (priority <= 3))),
    constraint task_runs_ended_has_time CHECK (((status = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
    constraint task_runs_held_has_holder CHECK (((status = 'running'::text) = (holder IS NOT NULL))),
    constraint task_runs_only_success_has_result CHECK (((result IS NULL) OR (status = 'succeeded'::text))),
    constraint task_runs_only_waiting_waits CHECK (((waits_for IS NULL) OR (status = 'pending'::text))),
    constraint task_runs_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text]))),
    constraint task_runs_task_name_check CHECK ((task_name <> ''::text)),
    constraint task_runs_task_version_check CHECK ((task_version > 0))
);
CREATE UNIQUE INDEX task_runs_key ON rowlease.task_runs USING btree (task_name, run_key) WHERE (run_key IS NOT NULL);
CREATE INDEX task_runs_run_out ON rowlease.task_runs USING btree (lease_until) WHERE (status = 'running'::text);
CREATE INDEX task_runs_served ON rowlease.task_runs USING btree (task_name, task_version, priority, (due_at AT TIME ZONE 'UTC'::text), created_at) WHERE (status = 'pending'::text);
CREATE INDEX task_runs_waiting ON rowlease.task_runs USING btree (priority, due_at, created_at) WHERE (status = 'pending'::text);
comment on column rowlease.task_runs.due_at is 'When the row may be claimed; null: nothing to do.';
comment on column rowlease.task_runs.priority is '0 first to 3 last.';
comment on column rowlease.task_runs.fence is 'Rises whenever the right to the row changes; every write of a holder names it.';
comment on column rowlease.task_runs.holder is 'Who holds the lease; never leaves the durable wing.';
comment on column rowlease.task_runs.lease_until is 'When others may claim the row although it is held.';
comment on column rowlease.task_runs.attempt_count is 'Claims that ended in a crash or an error, the running one included.';
comment on column rowlease.task_runs.started_at is 'When the row was claimed first.';

create table rowlease.task_steps (
    run_id bigint not null,
    name text not null,
    result jsonb,
    fence bigint not null,
    ended_at timestamp with time zone not null default rowlease.clock(),
    constraint task_steps_pkey PRIMARY KEY (run_id, name),
    constraint task_steps_run_id_fkey FOREIGN KEY (run_id) REFERENCES rowlease.task_runs(id) ON DELETE CASCADE
);

create table rowlease.task_versions (
    name text not null,
    version integer not null,
    served_at timestamp with time zone not null,
    constraint task_versions_pkey PRIMARY KEY (name, version)
);

create table rowlease.timer_jobs (
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
    instance_id bigint not null,
    token integer not null,
    node text not null,
    constraint timer_jobs_pkey PRIMARY KEY (id),
    constraint leased_attempts_not_negative CHECK ((attempt_count >= 0)),
    constraint leased_error_is_short CHECK ((char_length(last_error) <= 2000)),
    constraint leased_fence_not_negative CHECK ((fence >= 0)),
    constraint leased_holder_has_lease CHECK (((holder IS NULL) = (lease_until IS NULL))),
    constraint leased_max_attempts_positive CHECK ((max_attempts > 0)),
    constraint leased_priority_known CHECK (((priority >= 0) AND (priority <= 3))),
    constraint timer_jobs_ended_has_time CHECK (((status = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
    constraint timer_jobs_held_has_holder CHECK (((status = 'processing'::text) = (holder IS NOT NULL))),
    constraint timer_jobs_instance_id_fkey FOREIGN KEY (instance_id) REFERENCES rowlease.workflow_instances(id) ON DELETE CASCADE,
    constraint timer_jobs_instance_id_token_fkey FOREIGN KEY (instance_id, token) REFERENCES rowlease.workflow_tokens(instance_id, number) ON DELETE CASCADE,
    constraint timer_jobs_one_per_token UNIQUE (instance_id, token),
    constraint timer_jobs_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'processing'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
    constraint timer_jobs_waiting_has_due_time CHECK (((status <> 'pending'::text) OR (due_at IS NOT NULL)))
);
CREATE INDEX timer_jobs_run_out ON rowlease.timer_jobs USING btree (lease_until) WHERE (status = 'processing'::text);
CREATE INDEX timer_jobs_waiting ON rowlease.timer_jobs USING btree (priority, due_at, created_at) WHERE (status = 'pending'::text);
comment on column rowlease.timer_jobs.due_at is 'When the row may be claimed; null: nothing to do.';
comment on column rowlease.timer_jobs.priority is '0 first to 3 last.';
comment on column rowlease.timer_jobs.fence is 'Rises whenever the right to the row changes; every write of a holder names it.';
comment on column rowlease.timer_jobs.holder is 'Who holds the lease; never leaves the durable wing.';
comment on column rowlease.timer_jobs.lease_until is 'When others may claim the row although it is held.';
comment on column rowlease.timer_jobs.attempt_count is 'Claims that ended in a crash or an error, the running one included.';
comment on column rowlease.timer_jobs.started_at is 'When the row was claimed first.';

create table rowlease.trigger_firings (
    id bigint not null generated always as identity,
    trigger_id bigint not null,
    slot text not null,
    fired_at timestamp with time zone not null default rowlease.clock(),
    started text,
    started_id bigint,
    constraint trigger_firings_pkey PRIMARY KEY (id),
    constraint trigger_firings_started_is_whole CHECK (((started IS NULL) = (started_id IS NULL))),
    constraint trigger_firings_trigger_id_fkey FOREIGN KEY (trigger_id) REFERENCES rowlease.triggers(id) ON DELETE CASCADE,
    constraint trigger_firings_trigger_id_slot_key UNIQUE (trigger_id, slot)
);

create table rowlease.trigger_hosts (
    host text not null,
    parked_until timestamp with time zone not null,
    constraint trigger_hosts_pkey PRIMARY KEY (host)
);

create table rowlease.triggers (
    id bigint not null generated always as identity,
    status text not null default 'idle'::text,
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
    name text not null,
    type text not null,
    config jsonb not null,
    condition text,
    target jsonb,
    expected_within interval,
    state jsonb not null default '{}'::jsonb,
    last_checked_at timestamp with time zone,
    last_fired_at timestamp with time zone,
    fire_count bigint not null default 0,
    constraint triggers_pkey PRIMARY KEY (id),
    constraint leased_attempts_not_negative CHECK ((attempt_count >= 0)),
    constraint leased_error_is_short CHECK ((char_length(last_error) <= 2000)),
    constraint leased_fence_not_negative CHECK ((fence >= 0)),
    constraint leased_holder_has_lease CHECK (((holder IS NULL) = (lease_until IS NULL))),
    constraint leased_max_attempts_positive CHECK ((max_attempts > 0)),
    constraint leased_priority_known CHECK (((priority >= 0) AND (priority <= 3))),
    constraint triggers_config_check CHECK ((jsonb_typeof(config) = 'object'::text)),
    constraint triggers_ended_has_time CHECK (((status = 'disabled'::text) = (finished_at IS NOT NULL))),
    constraint triggers_fire_count_check CHECK ((fire_count >= 0)),
    constraint triggers_held_has_holder CHECK (((status = 'checking'::text) = (holder IS NOT NULL))),
    constraint triggers_name_check CHECK ((name <> ''::text)),
    constraint triggers_name_key UNIQUE (name),
    constraint triggers_status_known CHECK ((status = ANY (ARRAY['idle'::text, 'checking'::text, 'disabled'::text]))),
    constraint triggers_target_check CHECK ((jsonb_typeof(target) = 'object'::text)),
    constraint triggers_type_known CHECK ((type = ANY (ARRAY['schedule'::text, 'api_poll'::text, 'completed'::text, 'event'::text, 'file'::text])))
);
CREATE INDEX triggers_of_a_type ON rowlease.triggers USING btree (type) WHERE (status <> 'disabled'::text);
CREATE INDEX triggers_run_out ON rowlease.triggers USING btree (lease_until) WHERE (status = 'checking'::text);
CREATE INDEX triggers_waiting ON rowlease.triggers USING btree (priority, due_at, created_at) WHERE (status = 'idle'::text);
comment on column rowlease.triggers.due_at is 'When the row may be claimed; null: nothing to do.';
comment on column rowlease.triggers.priority is '0 first to 3 last.';
comment on column rowlease.triggers.fence is 'Rises whenever the right to the row changes; every write of a holder names it.';
comment on column rowlease.triggers.holder is 'Who holds the lease; never leaves the durable wing.';
comment on column rowlease.triggers.lease_until is 'When others may claim the row although it is held.';
comment on column rowlease.triggers.attempt_count is 'Claims that ended in a crash or an error, the running one included.';
comment on column rowlease.triggers.started_at is 'When the row was claimed first.';

create table rowlease.workflow_events (
    id bigint not null generated always as identity,
    instance_id bigint not null,
    token integer,
    node text,
    what text not null,
    at timestamp with time zone not null,
    duration interval,
    detail jsonb not null default '{}'::jsonb,
    constraint workflow_events_pkey PRIMARY KEY (id),
    constraint workflow_events_instance_id_fkey FOREIGN KEY (instance_id) REFERENCES rowlease.workflow_instances(id) ON DELETE CASCADE,
    constraint workflow_events_once_per_token UNIQUE (instance_id, token, what),
    constraint workflow_events_what_known CHECK ((what = ANY (ARRAY['started'::text, 'waits'::text, 'passed'::text, 'cancelled'::text, 'failed'::text, 'retried'::text, 'completed'::text])))
);
CREATE INDEX workflow_events_instance ON rowlease.workflow_events USING btree (instance_id, id);

create table rowlease.workflow_instances (
    id bigint not null generated always as identity,
    workflow_name text not null,
    workflow_version integer not null,
    start_key text,
    start_digest text not null,
    status text not null default 'running'::text,
    variables jsonb not null,
    next_token integer not null default 1,
    failed_node text,
    last_error text,
    created_by text not null default SESSION_USER,
    created_at timestamp with time zone not null default rowlease.clock(),
    finished_at timestamp with time zone,
    constraint workflow_instances_pkey PRIMARY KEY (id),
    constraint workflow_instances_ended_has_time CHECK (((status = 'running'::text) = (finished_at IS NULL))),
    constraint workflow_instances_error_is_short CHECK ((char_length(last_error) <= 2000)),
    constraint workflow_instances_failed_has_error CHECK (((status = 'failed'::text) = (last_error IS NOT NULL))),
    constraint workflow_instances_status_known CHECK ((status = ANY (ARRAY['running'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
    constraint workflow_instances_variables_check CHECK ((jsonb_typeof(variables) = 'object'::text)),
    constraint workflow_instances_workflow_name_start_key_key UNIQUE (workflow_name, start_key),
    constraint workflow_instances_workflow_name_workflow_version_fkey FOREIGN KEY (workflow_name, workflow_version) REFERENCES rowlease.workflows(name, version)
);

create table rowlease.workflow_tokens (
    instance_id bigint not null,
    number integer not null,
    node text not null,
    status text not null default 'active'::text,
    scope jsonb not null default '[]'::jsonb,
    source integer,
    connection integer,
    entered_at timestamp with time zone not null,
    ended_at timestamp with time zone,
    outcome text,
    restored_as integer,
    constraint workflow_tokens_pkey PRIMARY KEY (instance_id, number),
    constraint workflow_tokens_consumed_has_outcome CHECK (((status = 'consumed'::text) = (outcome IS NOT NULL))),
    constraint workflow_tokens_ended_has_time CHECK (((status = 'active'::text) = (ended_at IS NULL))),
    constraint workflow_tokens_instance_id_fkey FOREIGN KEY (instance_id) REFERENCES rowlease.workflow_instances(id) ON DELETE CASCADE,
    constraint workflow_tokens_instance_id_source_connection_key UNIQUE (instance_id, source, connection),
    constraint workflow_tokens_number_check CHECK ((number > 0)),
    constraint workflow_tokens_only_cancelled_are_restored CHECK (((restored_as IS NULL) OR (status = 'cancelled'::text))),
    constraint workflow_tokens_status_known CHECK ((status = ANY (ARRAY['active'::text, 'consumed'::text, 'cancelled'::text])))
);
CREATE INDEX workflow_tokens_active ON rowlease.workflow_tokens USING btree (instance_id) WHERE (status = 'active'::text);

create table rowlease.workflows (
    name text not null,
    version integer not null,
    digest text not null,
    definition jsonb not null,
    enabled boolean not null default true,
    created_by text not null default SESSION_USER,
    created_at timestamp with time zone not null default rowlease.clock(),
    constraint workflows_pkey PRIMARY KEY (name, version),
    constraint workflows_definition_check CHECK ((jsonb_typeof(definition) = 'object'::text)),
    constraint workflows_digest_check CHECK ((digest ~ '^[0-9a-f]{64}$'::text)),
    constraint workflows_name_check CHECK ((name <> ''::text)),
    constraint workflows_name_digest_key UNIQUE (name, digest),
    constraint workflows_version_check CHECK ((version > 0))
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
    left_out,
    kind,
    parent_id,
    only_changes,
    updated_rows,
    undone_at,
    undone_by
   FROM rowlease.import_jobs;

create view rowlease.task_runs_seen as
 SELECT id,
    status,
    due_at,
    priority,
    fence,
    attempt_count,
    max_attempts,
    last_error,
    created_by,
    created_at,
    started_at,
    finished_at,
    task_name,
    task_version,
    input,
    run_key,
    trace_id,
    waits_for,
    result,
    status = 'running'::text AND lease_until < rowlease.clock() AS interrupted,
    status = 'pending'::text AND (due_at IS NULL OR due_at > rowlease.clock()) AS asleep,
    last_heartbeat_at AS last_seen_at,
    lease_until,
        CASE
            WHEN status = 'pending'::text AND due_at <= rowlease.clock() AND NOT (EXISTS ( SELECT
               FROM rowlease.task_versions known
              WHERE known.name = run.task_name AND known.version = run.task_version AND known.served_at > (rowlease.clock() - '00:02:00'::interval))) THEN ((('no worker has looked for work of '::text || task_name) || ' version '::text) || task_version) || COALESCE(' since '::text || (( SELECT to_char((known.served_at AT TIME ZONE 'utc'::text), 'YYYY-MM-DD HH24:MI:SS "UTC"'::text) AS to_char
               FROM rowlease.task_versions known
              WHERE known.name = run.task_name AND known.version = run.task_version)), ''::text)
            ELSE NULL::text
        END AS unserved
   FROM rowlease.task_runs run;
comment on view rowlease.task_runs_seen is 'Task runs without their holders.';

create view rowlease.triggers_seen as
 SELECT id,
    name,
    type,
    config,
    condition,
    target,
    expected_within,
    state,
    status,
    due_at,
    fence,
    attempt_count,
    max_attempts,
    last_checked_at,
    last_fired_at,
    fire_count,
    last_error,
    created_by,
    created_at,
    finished_at
   FROM rowlease.triggers;
