-- Triggers. Time only from `rowlease.clock()`.
-- Lock order: an outbox message being delivered, then the trigger, then what it starts.

-- name: put
-- A trigger under its name: new, or changed and idle again. What its last check saw is forgotten when its config changed.
insert into rowlease.triggers as trigger (
    name, type, config, condition, target, expected_within, state, due_at, max_attempts, created_by
)
values (
    %(name)s, %(type)s, %(config)s, %(condition)s, %(target)s, %(expected_within)s, %(state)s, %(due_at)s,
    %(max_attempts)s, session_user
)
on conflict (name) do update
set type = excluded.type,
    config = excluded.config,
    condition = excluded.condition,
    target = excluded.target,
    expected_within = excluded.expected_within,
    due_at = excluded.due_at,
    max_attempts = excluded.max_attempts,
    state = case
        when trigger.type = excluded.type and trigger.config = excluded.config and excluded.state = '{}' then trigger.state
        else excluded.state
    end,
    status = 'idle',
    fence = trigger.fence + 1,
    holder = null,
    lease_until = null,
    attempt_count = 0,
    last_error = null,
    finished_at = null
returning id

-- name: wake
-- Wakes workers that wait, when the transaction commits.
select pg_notify('rowlease', 'triggers')

-- name: now
-- The time.
select rowlease.clock() as now

-- name: lock_all
-- One at a time changes which triggers there are: loops are looked for among all of them.
select pg_advisory_xact_lock(hashtextextended('rowlease triggers', 0))

-- name: trigger
-- One trigger by its name.
select *
from rowlease.triggers_seen
where name = %(name)s

-- name: by_id
-- One trigger by its number.
select *
from rowlease.triggers_seen
where id = %(id)s

-- name: triggers
-- All triggers by name.
select *
from rowlease.triggers_seen
where %(type)s::text is null or type = %(type)s
order by name

-- name: remove
-- A trigger is gone, with its memory of what fired; what it started stays.
delete from rowlease.triggers
where name = %(name)s
returning id

-- name: disable
-- A trigger is switched off; whoever checks it has lost it.
update rowlease.triggers
set status = 'disabled',
    fence = fence + 1,
    holder = null,
    lease_until = null,
    due_at = null,
    finished_at = rowlease.clock(),
    last_error = %(error)s
where name = %(name)s
    and status <> 'disabled'
returning id

-- name: enable
-- A trigger that was switched off is idle again, with all its attempts.
update rowlease.triggers
set status = 'idle',
    fence = fence + 1,
    due_at = %(due_at)s,
    state = case when %(state)s::jsonb = '{}' then state else %(state)s::jsonb end,
    attempt_count = 0,
    finished_at = null,
    last_error = null
where name = %(name)s
    and status = 'disabled'
returning id

-- name: served
-- A check is over: the trigger is idle until the next, its attempt not counted. No row: the lease is lost.
update rowlease.triggers
set status = 'idle',
    fence = fence + 1,
    holder = null,
    lease_until = null,
    due_at = %(due_at)s,
    attempt_count = 0,
    state = %(state)s,
    last_checked_at = rowlease.clock(),
    last_error = null
where id = %(id)s
    and fence = %(fence)s
    and status = 'checking'
returning id

-- name: lock
-- Locks a trigger that is not switched off.
select id
from rowlease.triggers
where id = %(id)s
    and status <> 'disabled'
for no key update

-- name: erred
-- An event could not be served: the error is counted, and switches the trigger off when it was the last allowed.
update rowlease.triggers
set attempt_count = attempt_count + 1,
    last_error = %(error)s,
    last_checked_at = rowlease.clock(),
    status = case when attempt_count + 1 < max_attempts then status else 'disabled' end,
    fence = fence + 1,
    finished_at = case when attempt_count + 1 < max_attempts then null else rowlease.clock() end
where id = %(id)s
    and status = 'idle'
returning status

-- name: checked
-- An event was looked at without an error.
update rowlease.triggers
set attempt_count = 0,
    last_error = null,
    last_checked_at = rowlease.clock()
where id = %(id)s
    and status = 'idle'

-- name: put_firing
-- A slot fires; no row: it has fired before.
insert into rowlease.trigger_firings (trigger_id, slot)
values (%(id)s, %(slot)s)
on conflict do nothing
returning id

-- name: fired
-- What a firing started, counted with its trigger.
with firing as (
    update rowlease.trigger_firings
    set started = %(started)s,
        started_id = %(started_id)s
    where id = %(firing)s
    returning trigger_id
)
update rowlease.triggers
set last_fired_at = rowlease.clock(),
    fire_count = fire_count + 1
from firing
where triggers.id = firing.trigger_id
returning triggers.id

-- name: firings
-- The newest firings of a trigger, newest first.
select slot, fired_at, started, started_id
from rowlease.trigger_firings
where trigger_id = %(id)s
order by id desc
limit %(limit)s

-- name: prune_firings
-- Firings of a schedule older than its newest are not asked for again.
delete from rowlease.trigger_firings
where trigger_id = %(id)s
    and id < (select max(id) - %(keep)s from rowlease.trigger_firings where trigger_id = %(id)s)

-- name: parked
-- Until when a host wants to be left alone, if that is yet to come.
select parked_until
from rowlease.trigger_hosts
where host = %(host)s
    and parked_until > rowlease.clock()

-- name: park
-- A host asked to be left alone for %(delay)s; a longer wish stands.
insert into rowlease.trigger_hosts as known (host, parked_until)
values (%(host)s, rowlease.clock() + %(delay)s)
on conflict (host) do update
set parked_until = greatest(known.parked_until, excluded.parked_until)
returning parked_until

-- name: next_moment
-- Seconds until the earliest trigger is to be checked, or a lease runs out; null when there is none.
select extract(epoch from least(
    (select min(due_at) from rowlease.triggers where status = 'idle' and priority = 2),
    (select min(lease_until) from rowlease.triggers where status = 'checking')
) - rowlease.clock())::float8 as seconds
