-- Triggers: what starts a workflow, a task or an import by itself.

create table rowlease.triggers (
    like rowlease.leased including all,
    name text not null unique check (name <> ''),
    type text not null,
    config jsonb not null check (jsonb_typeof(config) = 'object'),
    condition text,                                 -- in the expression language; null: always
    target jsonb check (jsonb_typeof(target) = 'object'),
    expected_within interval,                       -- not fired for so long is an alert
    state jsonb not null default '{}',              -- what the last check saw
    last_checked_at timestamptz,
    last_fired_at timestamptz,
    fire_count bigint not null default 0 check (fire_count >= 0),
    constraint triggers_type_known check (type in ('schedule', 'api_poll', 'completed', 'event', 'file')),
    constraint triggers_status_known check (status in ('idle', 'checking', 'disabled')),
    constraint triggers_held_has_holder check ((status = 'checking') = (holder is not null)),
    constraint triggers_ended_has_time check ((status = 'disabled') = (finished_at is not null))
);

alter table rowlease.triggers alter column status set default 'idle';

create index triggers_waiting on rowlease.triggers (priority, due_at, created_at) where status = 'idle';
create index triggers_run_out on rowlease.triggers (lease_until) where status = 'checking';
create index triggers_of_a_type on rowlease.triggers (type) where status <> 'disabled';

-- What fired: a slot of a trigger (a moment, an event's key, an end) fires once.
create table rowlease.trigger_firings (
    id bigint generated always as identity primary key,
    trigger_id bigint not null references rowlease.triggers (id) on delete cascade,
    slot text not null,
    fired_at timestamptz not null default rowlease.clock(),
    started text,                                   -- what it started: task_run, workflow_instance, import_job
    started_id bigint,
    unique (trigger_id, slot),
    constraint trigger_firings_started_is_whole check ((started is null) = (started_id is null))
);

-- Hosts that asked to be left alone (429, 503), for all triggers.
create table rowlease.trigger_hosts (
    host text primary key,
    parked_until timestamptz not null
);

-- A trigger as anybody may see it: everything but who holds it.
create view rowlease.triggers_seen as
select
    id, name, type, config, condition, target, expected_within, state, status, due_at, fence, attempt_count, max_attempts,
    last_checked_at, last_fired_at, fire_count, last_error, created_by, created_at, finished_at
from rowlease.triggers;
