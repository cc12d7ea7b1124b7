-- Workflows and their instances: tokens, timers, approvals, waits on imports, history; and the outbox.

-- A workflow as data. A version is never changed: one that differs gets the next number, one that came before keeps its own.
create table rowlease.workflows (
    name text not null check (name <> ''),
    version integer not null check (version > 0),
    digest text not null check (digest ~ '^[0-9a-f]{64}$'),
    definition jsonb not null check (jsonb_typeof(definition) = 'object'),
    enabled boolean not null default true,          -- the newest enabled version starts new instances
    created_by text not null default session_user,
    created_at timestamptz not null default rowlease.clock(),
    primary key (name, version),
    unique (name, digest)
);

-- One run of a workflow. It has no lease: whoever moves it locks this row first, then its tokens.
create table rowlease.workflow_instances (
    id bigint generated always as identity primary key,
    workflow_name text not null,
    workflow_version integer not null,
    start_key text,                                 -- the starter's own name for this instance
    start_digest text not null,                     -- of the variables it was started with
    status text not null default 'running',
    variables jsonb not null check (jsonb_typeof(variables) = 'object'),
    next_token integer not null default 1,          -- tokens are numbered within their instance
    failed_node text,
    last_error text,
    created_by text not null default session_user,
    created_at timestamptz not null default rowlease.clock(),
    finished_at timestamptz,
    foreign key (workflow_name, workflow_version) references rowlease.workflows (name, version),
    unique (workflow_name, start_key),
    constraint workflow_instances_status_known check (status in ('running', 'completed', 'failed', 'cancelled')),
    constraint workflow_instances_ended_has_time check ((status = 'running') = (finished_at is null)),
    constraint workflow_instances_failed_has_error check ((status = 'failed') = (last_error is not null)),
    constraint workflow_instances_error_is_short check (char_length(last_error) <= 2000)
);

-- A mark on a node. It never moves: the node is left by consuming it, and each connection that is taken makes one new token.
create table rowlease.workflow_tokens (
    instance_id bigint not null references rowlease.workflow_instances (id) on delete cascade,
    number integer not null check (number > 0),
    node text not null,
    status text not null default 'active',
    scope jsonb not null default '[]',              -- the forks it is within, outermost first: [[node, token], ...]
    source integer,                                 -- the token that was consumed for it
    connection integer,                             -- by which connection, counted from 0 in the definition; null: by a retry
    entered_at timestamptz not null,
    ended_at timestamptz,
    outcome text,                                   -- how its node ended
    restored_as integer,                            -- the token that a retry put in its place
    primary key (instance_id, number),
    unique (instance_id, source, connection),
    constraint workflow_tokens_status_known check (status in ('active', 'consumed', 'cancelled')),
    constraint workflow_tokens_ended_has_time check ((status = 'active') = (ended_at is null)),
    constraint workflow_tokens_consumed_has_outcome check ((status = 'consumed') = (outcome is not null)),
    constraint workflow_tokens_only_cancelled_are_restored check (restored_as is null or status = 'cancelled')
);

create index workflow_tokens_active on rowlease.workflow_tokens (instance_id) where status = 'active';

-- A due moment of a token: of a timer node, or the time limit of an approval.
create table rowlease.timer_jobs (
    like rowlease.leased including all,
    instance_id bigint not null references rowlease.workflow_instances (id) on delete cascade,
    token integer not null,
    node text not null,
    foreign key (instance_id, token) references rowlease.workflow_tokens (instance_id, number) on delete cascade,
    constraint timer_jobs_one_per_token unique (instance_id, token),
    constraint timer_jobs_status_known check (status in ('pending', 'processing', 'completed', 'failed', 'cancelled')),
    constraint timer_jobs_held_has_holder check ((status = 'processing') = (holder is not null)),
    constraint timer_jobs_ended_has_time check ((status in ('completed', 'failed', 'cancelled')) = (finished_at is not null)),
    constraint timer_jobs_waiting_has_due_time check (status <> 'pending' or due_at is not null)
);

alter table rowlease.timer_jobs alter column status set default 'pending';

create index timer_jobs_waiting on rowlease.timer_jobs (priority, due_at, created_at) where status = 'pending';
create index timer_jobs_run_out on rowlease.timer_jobs (lease_until) where status = 'processing';

-- A question to a person.
create table rowlease.approvals (
    id bigint generated always as identity primary key,
    instance_id bigint not null references rowlease.workflow_instances (id) on delete cascade,
    token integer not null,
    node text not null,
    status text not null default 'open',
    who text[] not null default '{}',               -- who may answer; empty: anybody
    question text not null,
    choices text[] not null check (cardinality(choices) > 0),
    asked_at timestamptz not null,
    due_at timestamptz,                             -- its time limit
    ended_at timestamptz,
    answered_by text,
    choice text,
    note text check (char_length(note) <= 10000),
    foreign key (instance_id, token) references rowlease.workflow_tokens (instance_id, number) on delete cascade,
    constraint approvals_one_per_token unique (instance_id, token),
    constraint approvals_status_known check (status in ('open', 'answered', 'timed_out', 'cancelled')),
    constraint approvals_ended_has_time check ((status = 'open') = (ended_at is null)),
    constraint approvals_answer_is_whole check ((status = 'answered') = (answered_by is not null and choice is not null)),
    constraint approvals_choice_is_one check (choice is null or choice = any(choices))
);

create index approvals_open on rowlease.approvals (id) where status = 'open';

-- A token that waits for the end of an import job.
create table rowlease.import_waits (
    instance_id bigint not null,
    token integer not null,
    job_id bigint not null references rowlease.import_jobs (id),
    job_fence bigint not null,                      -- when the wait began; messages of earlier ends are not for it
    own boolean not null,                           -- this node submitted the job
    primary key (instance_id, token),
    foreign key (instance_id, token) references rowlease.workflow_tokens (instance_id, number) on delete cascade
);

create index import_waits_job on rowlease.import_waits (job_id);

-- History: what happened to an instance. A token enters its node once and passes it once.
create table rowlease.workflow_events (
    id bigint generated always as identity primary key,
    instance_id bigint not null references rowlease.workflow_instances (id) on delete cascade,
    token integer,
    node text,
    what text not null,
    at timestamptz not null,
    duration interval,                              -- how long the token stood on the node
    detail jsonb not null default '{}',
    constraint workflow_events_what_known check (
        what in ('started', 'waits', 'passed', 'cancelled', 'failed', 'retried', 'completed')
    ),
    constraint workflow_events_once_per_token unique (instance_id, token, what)
);

create index workflow_events_instance on rowlease.workflow_events (instance_id, id);

-- An announcement, written in the transaction of what it announces.
create table rowlease.outbox_messages (
    like rowlease.leased including all,
    topic text not null check (topic <> ''),
    key text not null check (key <> ''),            -- messages of one key are delivered in order
    payload jsonb not null check (jsonb_typeof(payload) = 'object'),
    constraint outbox_messages_status_known check (status in ('pending', 'delivering', 'dispatched', 'dead')),
    constraint outbox_messages_held_has_holder check ((status = 'delivering') = (holder is not null)),
    constraint outbox_messages_ended_has_time check ((status in ('dispatched', 'dead')) = (finished_at is not null)),
    constraint outbox_messages_waiting_has_due_time check (status <> 'pending' or due_at is not null)
);

alter table rowlease.outbox_messages alter column status set default 'pending';

create index outbox_messages_waiting on rowlease.outbox_messages (priority, due_at, created_at) where status = 'pending';
create index outbox_messages_run_out on rowlease.outbox_messages (lease_until) where status = 'delivering';
create index outbox_messages_open on rowlease.outbox_messages (key, id) where status in ('pending', 'delivering');
