-- Durable tasks: runs, their stored steps, facts, the ledger of outside operations, attempts that ended without the run.

create table rowlease.task_runs (
    like rowlease.leased including all,
    task_name text not null check (task_name <> ''),
    task_version integer not null check (task_version > 0),
    input jsonb not null,
    run_key text,                                   -- the caller's own name for this run; within a task it is one run
    trace_id text not null,                         -- what belongs together: handed on from run to run
    waits_for text,                                 -- the fact that wakes the run
    announces boolean not null default false,       -- its end is written to the outbox
    result jsonb,
    constraint task_runs_status_known check (status in ('pending', 'running', 'succeeded', 'failed', 'cancelled')),
    constraint task_runs_held_has_holder check ((status = 'running') = (holder is not null)),
    constraint task_runs_ended_has_time check ((status in ('succeeded', 'failed', 'cancelled')) = (finished_at is not null)),
    constraint task_runs_only_waiting_waits check (waits_for is null or status = 'pending'),
    constraint task_runs_only_success_has_result check (result is null or status = 'succeeded')
);

alter table rowlease.task_runs alter column status set default 'pending';

create index task_runs_waiting on rowlease.task_runs (priority, due_at, created_at) where status = 'pending';
create index task_runs_run_out on rowlease.task_runs (lease_until) where status = 'running';
-- A claim asks per task and version, so that runs nobody here can serve cost it nothing. The due time is written in another
-- way than in task_runs_waiting, so that the planner cannot take that index for the claim's order and filter a backlog away.
create index task_runs_served on rowlease.task_runs (
    task_name, task_version, priority, (due_at at time zone 'UTC'), created_at
)
    where status = 'pending';
create unique index task_runs_key on rowlease.task_runs (task_name, run_key) where run_key is not null;

-- What a step gave, kept so that it is not run again. Sleeps and waits are steps too.
create table rowlease.task_steps (
    run_id bigint not null references rowlease.task_runs (id) on delete cascade,
    name text not null,
    result jsonb,
    fence bigint not null,
    ended_at timestamptz not null default rowlease.clock(),
    primary key (run_id, name)
);

-- What happened outside. The first of a name stands.
create table rowlease.task_facts (
    run_id bigint not null references rowlease.task_runs (id) on delete cascade,
    name text not null,
    payload jsonb,
    came_at timestamptz not null default rowlease.clock(),
    primary key (run_id, name)
);

-- Outside operations: written before they begin, their result after. One without a result may have happened or not.
create table rowlease.task_operations (
    run_id bigint not null references rowlease.task_runs (id) on delete cascade,
    key text not null,
    attempts integer not null default 1 check (attempts > 0),
    began_at timestamptz not null default rowlease.clock(),
    ended_at timestamptz,
    result jsonb,
    primary key (run_id, key)
);

-- Attempts that ended and left their run open; the attempt that ended the run is the run's own row.
create table rowlease.task_attempts (
    run_id bigint not null references rowlease.task_runs (id) on delete cascade,
    fence bigint not null,
    how text not null,
    last_seen_at timestamptz,                       -- its claim or its last renewal
    ended_at timestamptz not null default rowlease.clock(),
    error text check (char_length(error) <= 2000),
    primary key (run_id, fence),
    constraint task_attempts_how_known check (how in ('error', 'interrupted', 'asleep', 'waiting', 'handed_back'))
);

-- Which tasks some worker has looked for work of, and when last: why a run waits that nobody can serve.
create table rowlease.task_versions (
    name text not null,
    version integer not null,
    served_at timestamptz not null,
    primary key (name, version)
);

-- A run as anybody may see it: everything but who holds it, and why nobody runs it.
create view rowlease.task_runs_seen as
select
    run.id, run.status, run.due_at, run.priority, run.fence, run.attempt_count, run.max_attempts, run.last_error,
    run.created_by, run.created_at, run.started_at, run.finished_at,
    run.task_name, run.task_version, run.input, run.run_key, run.trace_id, run.waits_for, run.result,
    run.status = 'running' and run.lease_until < rowlease.clock() as interrupted,
    run.status = 'pending' and (run.due_at is null or run.due_at > rowlease.clock()) as asleep,
    run.last_heartbeat_at as last_seen_at,
    run.lease_until,
    case
        when run.status = 'pending' and run.due_at <= rowlease.clock() and not exists (
            select
            from rowlease.task_versions as known
            where known.name = run.task_name
                and known.version = run.task_version
                and known.served_at > rowlease.clock() - interval '2 minutes'
        )
        then 'no worker has looked for work of ' || run.task_name || ' version ' || run.task_version
            || coalesce(' since ' || (
                select to_char(known.served_at at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS "UTC"')
                from rowlease.task_versions as known
                where known.name = run.task_name
                    and known.version = run.task_version
            ), '')
    end as unserved
from rowlease.task_runs as run;

comment on view rowlease.task_runs_seen is 'Task runs without their holders.';
