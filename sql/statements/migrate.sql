-- Migrations and what is known of them. All of it runs under one advisory lock, taken first in each transaction.

-- name: lock
-- One migrator at a time: waits for the other, until this transaction ends.
select pg_advisory_xact_lock(%(key)s);

-- name: create_schema
-- The schema exists afterwards.
create schema if not exists rowlease;

-- name: create_ledger
-- The table of applied migrations exists afterwards.
create table if not exists rowlease.migrations (
    version    integer     primary key,
    name       text        not null,
    checksum   text        not null,
    applied_at timestamptz not null default statement_timestamp()
);

-- name: ledger_exists
-- True when the table of applied migrations is there; needs no right to the schema.
select exists (
    select
      from pg_catalog.pg_class as c
      join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
     where n.nspname = 'rowlease'
       and c.relname = 'migrations'
) as found;

-- name: applied
-- The migrations that were applied, oldest first.
select version, name, checksum
  from rowlease.migrations
 order by version;

-- name: record
-- A migration counts as applied when this transaction commits.
insert into rowlease.migrations (version, name, checksum)
values (%(version)s, %(name)s, %(checksum)s);

-- name: unhurried
-- A migration may take its time, but not queue for ever behind a long transaction (until this transaction ends).
select set_config('statement_timeout', '0', true),
       set_config('idle_in_transaction_session_timeout', '0', true),
       set_config('lock_timeout', '60s', true);
