-- Where announcements go besides what waits for them here.

create table rowlease.outbox_routes (
    name text primary key check (name <> ''),
    topic text not null check (topic <> ''),
    kind text not null check (kind in ('task', 'webhook')),
    config jsonb not null check (jsonb_typeof(config) = 'object'),
    created_by text not null default session_user,
    created_at timestamptz not null default rowlease.clock()
);

create index outbox_routes_topic on rowlease.outbox_routes (topic);

-- Which messages were handed to which route: each once.
create table rowlease.outbox_deliveries (
    message_id bigint not null references rowlease.outbox_messages (id) on delete cascade,
    route text not null,
    handed_at timestamptz not null default rowlease.clock(),
    primary key (message_id, route)
);
