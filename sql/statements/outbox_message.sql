-- Outbox messages: written with their cause, delivered in order per key.
-- Lock order: whatever the route locks comes first, the message after it. `lock_key` is taken right before a message is
-- written, so that within a key the order of ids is the order of commits.

-- name: lock_key
-- Serializes writing into one key, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('rowlease outbox ' || %(key)s, 0))

-- name: put
-- A message that waits to be delivered.
insert into rowlease.outbox_messages (topic, key, payload, due_at, max_attempts)
values (%(topic)s, %(key)s, %(payload)s, rowlease.clock(), %(max_attempts)s)
returning id

-- name: wake
-- Wakes workers that wait, when the transaction commits; equal notifications of one transaction are one.
select pg_notify('rowlease', 'outbox_messages')

-- name: now_s
-- The time as seconds since 1970.
select extract(epoch from rowlease.clock())::bigint as seconds

-- name: message
-- One message as it may be seen (no holder).
select id, topic, key, payload, status, attempt_count, max_attempts, due_at, last_error, created_at, finished_at
from rowlease.outbox_messages
where id = %(id)s

-- name: messages
-- The newest messages, newest first.
select id, topic, key, payload, status, attempt_count, max_attempts, due_at, last_error, created_at, finished_at
from rowlease.outbox_messages
where (%(topic)s::text is null or topic = %(topic)s)
    and (%(status)s::text is null or status = %(status)s)
order by id desc
limit %(limit)s

-- name: next_moment
-- Seconds until the earliest message that is the head of its key becomes due, or a lease runs out; null when there is none.
select extract(epoch from least(
    (
        select waiting.due_at
        from rowlease.outbox_messages as waiting
        where waiting.status = 'pending'
            and waiting.priority = 2
            and not exists (
                select
                from rowlease.outbox_messages as earlier
                where earlier.key = waiting.key
                    and earlier.id < waiting.id
                    and earlier.status in ('pending', 'delivering')
            )
        order by waiting.due_at, waiting.created_at
        limit 1
    ),
    (select min(lease_until) from rowlease.outbox_messages where status = 'delivering')
) - rowlease.clock())::float8 as seconds

-- name: due
-- How many messages could be claimed now, by their due time alone; no more than a thousand are counted.
select count(*) as due
from (
    select
    from rowlease.outbox_messages
    where (status = 'pending' and priority = 2 and due_at <= rowlease.clock())
        or (status = 'delivering' and lease_until < rowlease.clock())
    limit 1000
) as counted
