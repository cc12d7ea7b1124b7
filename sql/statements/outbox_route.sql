-- Routes of the outbox.
-- Lock order: the message being delivered, then what is written for its routes.

-- name: put
-- A route under its name: new, or changed.
insert into rowlease.outbox_routes as route (name, topic, kind, config)
values (%(name)s, %(topic)s, %(kind)s, %(config)s)
on conflict (name) do update
set topic = excluded.topic,
    kind = excluded.kind,
    config = excluded.config

-- name: remove
-- A route is gone; messages that were handed to it before are not delivered any more.
delete from rowlease.outbox_routes
where name = %(name)s
returning name

-- name: routes
-- All routes by name, or those of a topic.
select name, topic, kind, config
from rowlease.outbox_routes
where %(topic)s::text is null or topic = %(topic)s
order by name

-- name: route
-- One route.
select name, topic, kind, config
from rowlease.outbox_routes
where name = %(name)s

-- name: hand_on
-- A message is handed to a route; no row: it was before.
insert into rowlease.outbox_deliveries (message_id, route)
values (%(message)s, %(route)s)
on conflict do nothing
returning route

-- name: redeliver
-- Dead messages, this one or those of a topic, wait again with all their attempts.
update rowlease.outbox_messages
set status = 'pending',
    fence = fence + 1,
    due_at = rowlease.clock(),
    attempt_count = 0,
    finished_at = null,
    last_error = null
where status = 'dead'
    and (%(id)s::bigint is null or id = %(id)s)
    and (%(topic)s::text is null or topic = %(topic)s)
returning id

-- name: wake
-- Wakes workers that wait, when the transaction commits.
select pg_notify('rowlease', 'outbox_messages')
