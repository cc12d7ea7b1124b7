-- The clock of the house, and the columns that every leased table has.
--
-- A leased table is made in its own migration like this (words: the row of the table in importer/lease.py):
--
--   create table rowlease.<table> (
--       like rowlease.leased including all,
--       ... columns of its own ...,
--       constraint <table>_status_known check (status in ('<waiting>', '<held>', '<ended>', ...)),
--       constraint <table>_held_has_holder check ((status = '<held>') = (holder is not null)),
--       constraint <table>_ended_has_time check ((status in ('<ended>', ...)) = (finished_at is not null))
--   );
--   create index <table>_waiting on rowlease.<table> (priority, due_at, created_at) where status = '<waiting>';
--   create index <table>_run_out on rowlease.<table> (lease_until) where status = '<held>';
--
-- `like ... including all` copies columns, defaults, checks, identity, primary key and comments; what depends on the
-- table's own words (the three checks and the claim's two indexes) is written out. A house test compares all of it.

-- Time as leases, timers and retries see it. STABLE, not volatile: only then may the planner use an index on due_at
-- or lease_until. A test moves it by `set rowlease.clock_offset = '1 hour'`; unset or empty is the real time.
create function rowlease.clock() returns timestamptz
    language sql stable parallel safe
    return statement_timestamp()
        + coalesce(nullif(current_setting('rowlease.clock_offset', true), '')::interval, interval '0');

comment on function rowlease.clock() is 'The only source of time for leases, timers and retries.';

create table rowlease.leased (
    id                bigint      generated always as identity primary key,
    status            text        not null,
    due_at            timestamptz,
    priority          smallint    not null default 2,
    fence             bigint      not null default 0,
    holder            text,
    lease_until       timestamptz,
    attempt_count     integer     not null default 0,
    max_attempts      integer     not null default 5,
    last_heartbeat_at timestamptz,
    last_error        text,
    created_by        text,
    created_at        timestamptz not null default rowlease.clock(),
    started_at        timestamptz,
    finished_at       timestamptz,
    constraint leased_priority_known check (priority between 0 and 3),
    constraint leased_fence_not_negative check (fence >= 0),
    constraint leased_attempts_not_negative check (attempt_count >= 0),
    constraint leased_max_attempts_positive check (max_attempts > 0),
    constraint leased_holder_has_lease check ((holder is null) = (lease_until is null)),
    constraint leased_error_is_short check (char_length(last_error) <= 2000)
);

comment on table rowlease.leased is 'Template of leased tables; holds no rows.';
comment on column rowlease.leased.due_at is 'When the row may be claimed; null: nothing to do.';
comment on column rowlease.leased.priority is '0 first to 3 last.';
comment on column rowlease.leased.fence is 'Rises whenever the right to the row changes; every write of a holder names it.';
comment on column rowlease.leased.holder is 'Who holds the lease; never leaves the durable wing.';
comment on column rowlease.leased.lease_until is 'When others may claim the row although it is held.';
comment on column rowlease.leased.attempt_count is 'Claims that ended in a crash or an error, the running one included.';
comment on column rowlease.leased.started_at is 'When the row was claimed first.';
