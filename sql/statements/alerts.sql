-- What somebody should look at. Reads only.

-- name: alerts
-- One row for each thing that is wrong now, the oldest first: kind, subject, since when, and a sentence.
select 'trigger_disabled' as kind, name as subject, finished_at as since,
    'it is switched off after ' || attempt_count || ' errors in a row: ' || last_error as message
from rowlease.triggers
where status = 'disabled'
    and last_error is not null

union all
select 'trigger_failing', name, coalesce(last_checked_at, created_at),
    'attempt ' || attempt_count || ' of ' || max_attempts || ' failed: ' || last_error
from rowlease.triggers
where status <> 'disabled'
    and attempt_count > 0
    and last_error is not null

union all
select 'trigger_silent', name, coalesce(last_fired_at, created_at) + expected_within,
    'it has not fired for longer than the ' || expected_within || ' in which it is expected to'
from rowlease.triggers
where status <> 'disabled'
    and coalesce(last_fired_at, created_at) + expected_within < rowlease.clock()

union all
select 'workflow_failed', workflow_name || ' ' || id, finished_at,
    coalesce('node ' || failed_node || ': ', '') || last_error
from rowlease.workflow_instances
where status = 'failed'
    and finished_at > rowlease.clock() - %(failed_within)s::interval

union all
select 'task_failed', task_name || ' v' || task_version, min(finished_at),
    count(*) || ' runs failed, the newest (' || max(id) || ') with: '
        || (array_agg(coalesce(last_error, '') order by id desc))[1]
from rowlease.task_runs
where status = 'failed'
    and finished_at > rowlease.clock() - %(failed_within)s::interval
group by task_name, task_version

union all
select 'import_too_long', form_name || ' ' || id, started_at, file_name || ' is being imported for too long'
from rowlease.import_jobs
where status = 'running'
    and started_at < rowlease.clock() - %(import_after)s::interval

union all
select 'workflow_too_long', workflow_name || ' ' || id, created_at, 'it has not ended for too long'
from rowlease.workflow_instances
where status = 'running'
    and created_at < rowlease.clock() - %(workflow_after)s::interval

union all
select 'queue_grows', queue.name, queue.oldest, queue.waiting || ' wait for a worker for too long'
from (
    select 'import_jobs' as name, count(*) as waiting, min(due_at) as oldest
    from rowlease.import_jobs
    where status = 'pending' and due_at < rowlease.clock() - %(queue_after)s::interval
    union all
    select 'task_runs', count(*), min(due_at)
    from rowlease.task_runs
    where status = 'pending' and due_at < rowlease.clock() - %(queue_after)s::interval
    union all
    select 'timer_jobs', count(*), min(due_at)
    from rowlease.timer_jobs
    where status = 'pending' and due_at < rowlease.clock() - %(queue_after)s::interval
    union all
    select 'outbox_messages', count(*), min(due_at)
    from rowlease.outbox_messages
    where status = 'pending' and due_at < rowlease.clock() - %(queue_after)s::interval
) as queue
where queue.waiting > 0

union all
select 'message_dead', topic, min(finished_at),
    count(*) || ' could not be delivered, the newest with: ' || (array_agg(coalesce(last_error, '') order by id desc))[1]
from rowlease.outbox_messages
where status = 'dead'
group by topic

order by since, kind, subject
