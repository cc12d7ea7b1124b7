-- Timers: due moments of tokens. Claiming, renewing and ending are those of the lease.
-- Lock order: the instance, its tokens, then the timer.

-- name: put
-- One timer per token; a token that has one keeps it.
insert into rowlease.timer_jobs (instance_id, token, node, due_at, max_attempts)
values (%(instance_id)s, %(token)s, %(node)s, %(due_at)s, %(max_attempts)s)
on conflict on constraint timer_jobs_one_per_token do nothing

-- name: wake
-- Wakes workers that wait, when the transaction commits.
select pg_notify('rowlease', 'timer_jobs')

-- name: timer
-- One timer as it may be seen (no holder).
select
    id, status, due_at, attempt_count, max_attempts, last_error, created_at, started_at, finished_at,
    instance_id, token, node
from rowlease.timer_jobs
where id = %(id)s

-- name: of_instance
-- The timers of an instance, oldest first.
select
    id, status, due_at, attempt_count, max_attempts, last_error, created_at, started_at, finished_at,
    instance_id, token, node
from rowlease.timer_jobs
where instance_id = %(instance_id)s
order by id

-- name: cancel
-- Open timers of these tokens are cancelled; whoever holds one loses it. The due time stays, for a retry.
update rowlease.timer_jobs
set status = 'cancelled',
    fence = fence + 1,
    holder = null,
    lease_until = null,
    finished_at = rowlease.clock()
where instance_id = %(instance_id)s
    and token = any(%(tokens)s)
    and status in ('pending', 'processing')

-- name: next_moment
-- Seconds until the earliest timer becomes due or a lease runs out; null when there is none.
select extract(epoch from least(
    (select min(due_at) from rowlease.timer_jobs where status = 'pending' and priority = 2),
    (select min(lease_until) from rowlease.timer_jobs where status = 'processing')
) - rowlease.clock())::float8 as seconds

-- name: due
-- How many timers could be claimed now; no more than a thousand are counted.
select count(*) as due
from (
    select
    from rowlease.timer_jobs
    where (status = 'pending' and priority = 2 and due_at <= rowlease.clock())
        or (status = 'processing' and lease_until < rowlease.clock())
    limit 1000
) as counted
