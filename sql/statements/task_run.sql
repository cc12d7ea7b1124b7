-- Durable tasks. Time only from `rowlease.clock()`; `(select rowlease.clock())` asks it once for a statement of many rows.
-- Lock order: the run by its fence, then its steps, facts, operations and attempts; an outbox message last.

-- name: enqueue
-- A run that waits, and workers are woken when it commits; no row when the task has a run of this key.
with added as (
    insert into rowlease.task_runs (
        task_name, task_version, input, run_key, trace_id, announces, priority, due_at, max_attempts, created_by
    )
    values (
        %(task_name)s, %(task_version)s, %(input)s::jsonb, %(run_key)s, %(trace_id)s, %(announces)s, %(priority)s,
        coalesce(%(due_at)s, rowlease.clock() + %(delay)s), %(max_attempts)s, session_user
    )
    on conflict (task_name, run_key) where run_key is not null do nothing
    returning id
)
select id, pg_notify('rowlease', 'task_runs')::text as woken
from added

-- name: copy_runs
-- Many runs without keys at once.
copy rowlease.task_runs (input, task_name, task_version, trace_id, priority, max_attempts, due_at, created_at, created_by)
from stdin

-- name: moment
-- The time, and the time after a delay, as text that COPY reads back.
select rowlease.clock()::text as now, (rowlease.clock() + %(delay)s)::text as later, session_user::text as by

-- name: create_keyed
-- A place for runs with keys until their keys are looked at.
create temporary table task_runs_keyed (position integer primary key, run_key text not null, input jsonb not null)
on commit drop

-- name: copy_keyed
-- Many runs with keys at once.
copy task_runs_keyed (position, run_key, input)
from stdin

-- name: enqueue_keyed
-- Runs of the new keys, in the order they were given; keys that have a run are left.
insert into rowlease.task_runs (
    task_name, task_version, input, run_key, trace_id, priority, due_at, max_attempts, created_by
)
select
    %(task_name)s, %(task_version)s, keyed.input, keyed.run_key, %(trace_id)s, %(priority)s,
    coalesce(%(due_at)s, rowlease.clock() + %(delay)s), %(max_attempts)s, session_user
from task_runs_keyed as keyed
order by keyed.position
on conflict (task_name, run_key) where run_key is not null do nothing

-- name: keyed_otherwise
-- The first given key whose run has other input.
select keyed.run_key, run.id, run.input, keyed.input as wanted
from task_runs_keyed as keyed
join rowlease.task_runs as run on run.task_name = %(task_name)s and run.run_key = keyed.run_key
where run.input <> keyed.input
order by keyed.position
limit 1

-- name: by_key
-- The run of a key.
select id, input
from rowlease.task_runs
where task_name = %(task_name)s
    and run_key = %(run_key)s

-- name: wake
-- Wakes workers that wait, when the transaction commits; equal notifications of one transaction are one.
select pg_notify('rowlease', 'task_runs')

-- name: waiting_runs
-- One branch of the claim: due runs of one task in one version, by due time and age. The due time is written as in the index
-- task_runs_served: by task_runs_waiting, which has the same order, the planner would read past all runs of other tasks
-- (measured with 500,000 of them: 185 ms).
union all
select served.id, served.due_at, served.created_at
from (
    select waiting.id, waiting.due_at, waiting.created_at
    from rowlease.task_runs as waiting
    where waiting.status = 'pending'
        and waiting.task_name = {task_name}
        and waiting.task_version = {task_version}
        and waiting.priority = rank.priority
        and (waiting.due_at at time zone 'UTC') <= (rowlease.clock() at time zone 'UTC')
    order by (waiting.due_at at time zone 'UTC'), waiting.created_at
    limit %(limit)s
    for update skip locked
) as served

-- name: claim
-- The lease's claim for runs of these tasks and versions only. {waiting_runs}: a branch for each, read from its own part of
-- an index, so that a backlog of runs nobody here can serve is never looked at; the branches are brought into the order of
-- due time and age. What a branch locks beyond the limit is free again at once. An attempt that was cut off is written down
-- as interrupted. Runs at max_attempts are left to fail_exhausted; locked ones are passed over.
with candidate as materialized (
    select due.id, due.cut_off, due.fence, due.last_heartbeat_at, due.lease_until
    from (values (0::smallint), (1::smallint), (2::smallint), (3::smallint)) as rank (priority)
    cross join lateral (
        select held.id, true as cut_off, held.fence, held.last_heartbeat_at, held.lease_until
        from (
            select run_out.id, run_out.fence, run_out.last_heartbeat_at, run_out.lease_until
            from rowlease.task_runs as run_out
            where run_out.status = 'running'
                and run_out.lease_until < rowlease.clock()
                and run_out.priority = rank.priority
                and run_out.attempt_count < run_out.max_attempts
                and (run_out.task_name, run_out.task_version) in (
                    select served.name, served.version
                    from unnest(%(names)s::text[], %(versions)s::integer[]) as served (name, version)
                )
            order by run_out.due_at, run_out.created_at, run_out.id
            limit %(limit)s
            for update skip locked
        ) as held
        union all
        select free.id, false, null::bigint, null::timestamptz, null::timestamptz
        from (
            select branch.id
            from (
                select null::bigint as id, null::timestamptz as due_at, null::timestamptz as created_at
                where false
                {waiting_runs}
            ) as branch
            order by branch.due_at, branch.created_at
            limit %(limit)s
        ) as free
    ) as due
    limit %(limit)s
),
interrupted as (
    insert into rowlease.task_attempts (run_id, fence, how, last_seen_at, ended_at)
    select candidate.id, candidate.fence, 'interrupted', candidate.last_heartbeat_at, candidate.lease_until
    from candidate
    where candidate.cut_off
    on conflict do nothing
),
claimed as (
    update rowlease.task_runs as run
    set status = 'running',
        fence = run.fence + 1,
        holder = %(holder)s,
        lease_until = (select rowlease.clock()) + %(ttl)s,
        last_heartbeat_at = (select rowlease.clock()),
        attempt_count = run.attempt_count + 1,
        started_at = coalesce(run.started_at, (select rowlease.clock())),
        waits_for = null
    where run.id = any (array(select candidate.id from candidate))
    returning
        run.id, run.fence, run.attempt_count, run.max_attempts, run.task_name, run.task_version, run.input::text as input,
        run.trace_id, run.priority, run.due_at, run.created_at
)
select id, fence, attempt_count, max_attempts, task_name, task_version, input, trace_id, priority
from claimed
order by priority, due_at, created_at, id

-- name: finish_quietly
-- These runs have succeeded, except those whose end is to be announced (asked for, or a trigger waits for it): `finish` ends
-- those. One that was lost is not among the rows either. `any` beside the join: it keeps the plan on the primary key, where
-- the join alone reads the table once statistics say that it is small (3 ms instead of 0.05 ms for one of 20,000).
update rowlease.task_runs as run
set status = 'succeeded',
    fence = run.fence + 1,
    holder = null,
    lease_until = null,
    due_at = null,
    finished_at = (select rowlease.clock()),
    last_error = null,
    result = ended.result::jsonb
from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(results)s::text[]) as ended (id, fence, result)
where run.id = any (%(ids)s::bigint[])
    and run.id = ended.id
    and run.fence = ended.fence
    and run.status = 'running'
    and not run.announces
    and run.task_name <> all (array(
        select waiting.config ->> 'name'
        from rowlease.triggers as waiting
        where waiting.type = 'completed'
            and waiting.status <> 'disabled'
            and waiting.config ->> 'kind' = 'task'
    ))
returning run.id

-- name: finish_one
-- As finish_quietly, for one run: a task whose ends are written each by itself.
update rowlease.task_runs as run
set status = 'succeeded',
    fence = run.fence + 1,
    holder = null,
    lease_until = null,
    due_at = null,
    finished_at = rowlease.clock(),
    last_error = null,
    result = %(result)s::jsonb
where run.id = %(id)s
    and run.fence = %(fence)s
    and run.status = 'running'
    and not run.announces
    and not exists (
        select
        from rowlease.triggers as waiting
        where waiting.type = 'completed'
            and waiting.status <> 'disabled'
            and waiting.config ->> 'kind' = 'task'
            and waiting.config ->> 'name' = run.task_name
    )
returning run.id

-- name: finish
-- These runs have succeeded, and their ends are to be announced in the same transaction; one that is not among the rows was
-- lost before, and nothing of it is written.
update rowlease.task_runs as run
set status = 'succeeded',
    fence = run.fence + 1,
    holder = null,
    lease_until = null,
    due_at = null,
    finished_at = (select rowlease.clock()),
    last_error = null,
    result = ended.result::jsonb
from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(results)s::text[]) as ended (id, fence, result)
where run.id = any (%(ids)s::bigint[])
    and run.id = ended.id
    and run.fence = ended.fence
    and run.status = 'running'
returning run.id

-- name: end_attempt
-- Writes down how an attempt ended that left its run open.
insert into rowlease.task_attempts (run_id, fence, how, last_seen_at, error)
values (%(id)s, %(fence)s, %(how)s, rowlease.clock(), %(error)s)
on conflict do nothing

-- name: held
-- Whether the run is still held under this fence, and what it is otherwise.
select status = 'running' and fence = %(fence)s as held, status
from rowlease.task_runs
where id = %(id)s

-- name: steps
-- What is stored of the steps of a run.
select name, result
from rowlease.task_steps
where run_id = %(id)s

-- name: store_step
-- Renews the lease by its fence and stores what a step gave; no row: the lease is lost and nothing is stored.
with held as (
    update rowlease.task_runs
    set lease_until = rowlease.clock() + %(ttl)s,
        last_heartbeat_at = rowlease.clock()
    where id = %(id)s
        and fence = %(fence)s
        and status = 'running'
    returning id
)
insert into rowlease.task_steps (run_id, name, result, fence)
select id, %(name)s, %(result)s::jsonb, %(fence)s
from held
on conflict (run_id, name) do update set result = excluded.result, fence = excluded.fence, ended_at = excluded.ended_at
returning run_id

-- name: moment_after
-- The moment after a delay; null for no delay.
select rowlease.clock() + %(delay)s::interval as moment

-- name: is_over
-- Whether a moment has come.
select %(moment)s::timestamptz <= rowlease.clock() as is_over

-- name: suspend
-- The run gives its place back and waits: for a moment, a fact, or both. Its attempt does not count. No row: lease lost.
with waiting as (
    update rowlease.task_runs
    set status = 'pending',
        fence = fence + 1,
        holder = null,
        lease_until = null,
        due_at = %(due_at)s,
        waits_for = %(fact)s,
        attempt_count = greatest(attempt_count - 1, 0)
    where id = %(id)s
        and fence = %(fence)s
        and status = 'running'
    returning id
)
insert into rowlease.task_attempts (run_id, fence, how, last_seen_at)
select id, %(fence)s, %(how)s, rowlease.clock()
from waiting
returning run_id

-- name: lock
-- Locks a run for what is about to wake it.
select id, status, waits_for
from rowlease.task_runs
where id = %(id)s
for no key update

-- name: put_fact
-- Writes a fact, unless one of its name stands.
insert into rowlease.task_facts (run_id, name, payload)
values (%(id)s, %(name)s, %(payload)s::jsonb)
on conflict do nothing
returning run_id

-- name: fact
-- The fact of this name that stands.
select name, payload, came_at
from rowlease.task_facts
where run_id = %(id)s
    and name = %(name)s

-- name: facts
-- All facts of a run in the order they came.
select name, payload, came_at
from rowlease.task_facts
where run_id = %(id)s
order by came_at, name

-- name: wake_run
-- The run that waits for this fact is due.
update rowlease.task_runs
set due_at = rowlease.clock(),
    waits_for = null
where id = %(id)s
    and status = 'pending'
    and waits_for = %(name)s
returning id

-- name: begin_operation
-- Writes down that an operation is about to be done outside; says whether an earlier attempt began it, and its result if it
-- left one. The caller has renewed the lease in the same transaction.
insert into rowlease.task_operations as operation (run_id, key)
values (%(id)s, %(key)s)
on conflict (run_id, key) do update
set attempts = operation.attempts + (operation.ended_at is null)::integer
returning operation.attempts, operation.ended_at is not null as ended, operation.result

-- name: end_operation
-- Stores what an operation gave; the caller has renewed the lease in the same transaction.
update rowlease.task_operations
set ended_at = rowlease.clock(),
    result = %(result)s::jsonb
where run_id = %(id)s
    and key = %(key)s
    and ended_at is null
returning key

-- name: operations
-- The ledger of a run.
select key, attempts, began_at, ended_at, result
from rowlease.task_operations
where run_id = %(id)s
order by began_at, key

-- name: cancel
-- An open run is cancelled; whoever runs it has lost it. No row: it has ended, or there is none.
update rowlease.task_runs
set status = 'cancelled',
    fence = fence + 1,
    holder = null,
    lease_until = null,
    due_at = null,
    waits_for = null,
    finished_at = rowlease.clock(),
    last_error = %(error)s
where id = %(id)s
    and status in ('pending', 'running')
returning id

-- name: retry
-- A failed or cancelled run waits again with all its attempts; finished steps stay finished. No row: it is neither.
update rowlease.task_runs
set status = 'pending',
    fence = fence + 1,
    due_at = rowlease.clock(),
    finished_at = null,
    attempt_count = 0,
    last_error = null
where id = %(id)s
    and status in ('failed', 'cancelled')
returning id

-- name: announcement
-- What is announced of a run that has ended.
select id as run_id, fence, task_name as task, task_version as version, run_key as key, trace_id, status, result, last_error as error
from rowlease.task_runs
where id = %(id)s

-- name: announces
-- Whether the end of a run is to be announced: its caller asked for it, or a trigger waits for ends of its task.
select
    run.announces or exists (
        select
        from rowlease.triggers as waiting
        where waiting.type = 'completed'
            and waiting.status <> 'disabled'
            and waiting.config ->> 'kind' = 'task'
            and waiting.config ->> 'name' = run.task_name
    ) as announces
from rowlease.task_runs as run
where run.id = %(id)s

-- name: run
-- One run as it may be seen (no holder), with why nobody runs it.
select *
from rowlease.task_runs_seen
where id = %(id)s

-- name: runs
-- The newest runs, newest first.
select *
from rowlease.task_runs_seen
where (%(task_name)s::text is null or task_name = %(task_name)s)
    and (%(status)s::text is null or status = %(status)s)
    and (%(since)s::timestamptz is null or created_at >= %(since)s)
order by id desc
limit %(limit)s

-- name: attempts
-- Attempts of a run that left it open, oldest first.
select fence, how, last_seen_at, ended_at, error
from rowlease.task_attempts
where run_id = %(id)s
order by fence

-- name: served
-- Says that somebody looks for work of these tasks; twice a minute is enough.
insert into rowlease.task_versions as known (name, version, served_at)
select served.name, served.version, rowlease.clock()
from unnest(%(names)s::text[], %(versions)s::integer[]) as served (name, version)
order by served.name, served.version
on conflict (name, version) do update
set served_at = excluded.served_at
where known.served_at < excluded.served_at - interval '30 seconds'

-- name: next_moment
-- Seconds until the earliest run of these tasks becomes due or any lease runs out; null when there is none.
select extract(epoch from least(
    (
        select min(earliest.due_at)
        from unnest(%(names)s::text[], %(versions)s::integer[]) as served (name, version)
        cross join (values (0::smallint), (1::smallint), (2::smallint), (3::smallint)) as rank (priority)
        cross join lateral (
            select waiting.due_at
            from rowlease.task_runs as waiting
            where waiting.status = 'pending'
                and waiting.task_name = served.name
                and waiting.task_version = served.version
                and waiting.priority = rank.priority
                and (waiting.due_at at time zone 'UTC') is not null
            order by (waiting.due_at at time zone 'UTC')
            limit 1
        ) as earliest
    ),
    (
        select min(held.lease_until)
        from rowlease.task_runs as held
        where held.status = 'running'
            and (
                held.attempt_count >= held.max_attempts
                or (held.task_name, held.task_version) in (
                    select served.name, served.version
                    from unnest(%(names)s::text[], %(versions)s::integer[]) as served (name, version)
                )
            )
    )
) - rowlease.clock())::float8 as seconds
