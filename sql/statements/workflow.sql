-- Workflows, their instances, tokens, approvals, waits and history.
-- Lock order: the instance, its tokens, then the timer or message that moves it, then an approval, then import jobs.
-- Several instances are locked by rising number.

-- name: by_digest
-- The stored version of a workflow with this digest.
select version, enabled
from rowlease.workflows
where name = %(name)s
    and digest = %(digest)s

-- name: lock_name
-- Serializes the storing of versions of one workflow, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('rowlease workflow ' || %(name)s, 0))

-- name: store
-- Stores the next version of a workflow.
insert into rowlease.workflows (name, version, digest, definition)
select %(name)s, coalesce(max(version), 0) + 1, %(digest)s, %(definition)s
from rowlease.workflows
where name = %(name)s
returning version

-- name: newest_enabled
-- The version that starts new instances.
select version, digest, definition
from rowlease.workflows
where name = %(name)s
    and enabled
order by version desc
limit 1

-- name: definition
-- One version of a workflow, by its digest.
select definition
from rowlease.workflows
where name = %(name)s
    and digest = %(digest)s

-- name: versions
-- All stored versions, the newest of each workflow first, with the count of instances that run.
select
    w.name, w.version, w.digest, w.definition, w.enabled, w.created_at,
    (
        select count(*)
        from rowlease.workflow_instances as i
        where i.workflow_name = w.name
            and i.workflow_version = w.version
            and i.status = 'running'
    ) as running
from rowlease.workflows as w
where (%(name)s::text is null or w.name = %(name)s)
order by w.name, w.version desc

-- name: enable
-- Lets a version (null: all) start instances, or not; instances that run go on.
update rowlease.workflows
set enabled = %(enabled)s
where name = %(name)s
    and (%(version)s::integer is null or version = %(version)s)
returning version

-- name: start
-- A new instance; no row when its key was used before.
insert into rowlease.workflow_instances (workflow_name, workflow_version, start_key, start_digest, variables)
values (%(name)s, %(version)s, %(key)s, %(digest)s, %(variables)s)
on conflict (workflow_name, start_key) do nothing
returning id, created_at as now

-- name: by_key
-- The instance that was started under this key.
select id, start_digest, variables, workflow_version
from rowlease.workflow_instances
where workflow_name = %(name)s
    and start_key = %(key)s

-- name: started_with
-- The variables an instance was started with.
select detail -> 'variables' as variables
from rowlease.workflow_events
where instance_id = %(id)s
    and what = 'started'

-- name: lock
-- Locks an instance; its state, its workflow, and the moment that the whole firing counts as.
select
    i.id, i.status, i.variables, i.next_token, w.name, w.version, w.digest, rowlease.clock() as now
from rowlease.workflow_instances as i
join rowlease.workflows as w
    on w.name = i.workflow_name
    and w.version = i.workflow_version
where i.id = %(id)s
for update of i

-- name: lock_of_timer
-- The same for the instance of a timer, with the timer's token.
select
    i.id, i.status, i.variables, i.next_token, w.name, w.version, w.digest, rowlease.clock() as now,
    t.token, t.node, t.max_attempts
from rowlease.timer_jobs as t
join rowlease.workflow_instances as i
    on i.id = t.instance_id
join rowlease.workflows as w
    on w.name = i.workflow_name
    and w.version = i.workflow_version
where t.id = %(id)s
for update of i

-- name: lock_of_approval
-- The same for the instance of an approval.
select
    i.id, i.status, i.variables, i.next_token, w.name, w.version, w.digest, rowlease.clock() as now
from rowlease.approvals as a
join rowlease.workflow_instances as i
    on i.id = a.instance_id
join rowlease.workflows as w
    on w.name = i.workflow_name
    and w.version = i.workflow_version
where a.id = %(id)s
for update of i

-- name: lock_tokens
-- Locks the active tokens of an instance that is locked.
select number, node, scope, entered_at
from rowlease.workflow_tokens
where instance_id = %(id)s
    and status = 'active'
order by number
for update

-- name: write
-- All of a firing but what its new tokens wait for: tokens left and made, history, variables, and how the instance stands.
-- Gives back how many tokens were left; fewer than asked for means a broken lock.
with left_tokens as (
    update rowlease.workflow_tokens as t
    set status = 'consumed',
        outcome = gone.outcome,
        ended_at = %(now)s
    from unnest(%(left_numbers)s::integer[], %(left_outcomes)s::text[]) as gone (number, outcome)
    where t.instance_id = %(id)s
        and t.number = gone.number
        and t.status = 'active'
    returning t.number
),
new_tokens as (
    insert into rowlease.workflow_tokens (
        instance_id, number, node, status, scope, source, connection, entered_at, ended_at, outcome
    )
    select
        %(id)s, made.number, made.node,
        case when made.outcome is null then 'active' else 'consumed' end,
        made.scope, made.source, made.connection, %(now)s,
        case when made.outcome is not null then %(now)s::timestamptz end,
        made.outcome
    from unnest(
        %(new_numbers)s::integer[], %(new_nodes)s::text[], %(new_scopes)s::jsonb[], %(new_sources)s::integer[],
        %(new_connections)s::integer[], %(new_outcomes)s::text[]
    ) as made (number, node, scope, source, connection, outcome)
),
new_events as (
    insert into rowlease.workflow_events (instance_id, token, node, what, at, duration, detail)
    select %(id)s, event.token, event.node, event.what, %(now)s, event.duration, event.detail
    from unnest(
        %(event_tokens)s::integer[], %(event_nodes)s::text[], %(event_whats)s::text[], %(event_durations)s::interval[],
        %(event_details)s::jsonb[]
    ) with ordinality as event (token, node, what, duration, detail, position)
    order by event.position
)
update rowlease.workflow_instances as i
set variables = coalesce(%(variables)s::jsonb, i.variables),
    next_token = %(next_token)s,
    status = %(status)s,
    finished_at = case when %(status)s::text = 'running' then null else %(now)s::timestamptz end
where i.id = %(id)s
returning (select count(*) from left_tokens) as left_count

-- name: cancel_tokens
-- The active tokens of an instance are cancelled.
update rowlease.workflow_tokens
set status = 'cancelled',
    ended_at = %(now)s
where instance_id = %(id)s
    and status = 'active'
returning number, node

-- name: cancel_approvals
-- The open approvals of an instance are cancelled.
update rowlease.approvals
set status = 'cancelled',
    ended_at = %(now)s
where instance_id = %(id)s
    and status = 'open'
returning id

-- name: stop
-- An instance fails or is cancelled.
update rowlease.workflow_instances
set status = %(status)s,
    failed_node = %(node)s,
    last_error = %(error)s,
    finished_at = %(now)s
where id = %(id)s
    and status = 'running'
returning id

-- name: add_event
-- One line of history.
insert into rowlease.workflow_events (instance_id, token, node, what, at, detail)
values (%(id)s, %(token)s, %(node)s, %(what)s, %(now)s, %(detail)s)

-- name: own_jobs
-- Import jobs that this instance submitted and that nobody has begun, unless another running instance waits for them.
select j.id
from rowlease.import_waits as w
join rowlease.import_jobs as j
    on j.id = w.job_id
where w.instance_id = %(id)s
    and w.own
    and j.status = 'pending'
    and j.started_at is null
    and not exists (
        select
        from rowlease.import_waits as other
        join rowlease.workflow_tokens as t
            on t.instance_id = other.instance_id
            and t.number = other.token
        where other.job_id = j.id
            and other.instance_id <> w.instance_id
            and t.status = 'active'
    )
order by j.id
for update of j

-- name: unbegun_runs
-- Task runs of these tokens that nobody has begun.
select run.id
from rowlease.workflow_events as began
join rowlease.task_runs as run
    on run.id = (began.detail ->> 'run')::bigint
where began.instance_id = %(id)s
    and began.token = any(%(tokens)s)
    and began.what = 'waits'
    and run.status = 'pending'
    and run.started_at is null
order by run.id
for update of run

-- name: adopt_run
-- A task run is that of another token, after a retry.
update rowlease.task_runs
set run_key = %(key)s
where id = %(id)s
returning status

-- name: resume
-- A failed instance runs again.
update rowlease.workflow_instances
set status = 'running',
    failed_node = null,
    last_error = null,
    finished_at = null
where id = %(id)s
    and status = 'failed'
returning id

-- name: to_restore
-- The tokens that a failure cancelled and no retry has restored, with what they waited for.
select
    t.number, t.node, t.scope, j.status as timer_status, j.due_at, a.who, a.question, a.choices, a.due_at as answer_until,
    w.job_id, w.own, (began.detail ->> 'run')::bigint as run
from rowlease.workflow_tokens as t
left join rowlease.workflow_events as began
    on began.instance_id = t.instance_id
    and began.token = t.number
    and began.what = 'waits'
left join rowlease.timer_jobs as j
    on j.instance_id = t.instance_id
    and j.token = t.number
left join rowlease.approvals as a
    on a.instance_id = t.instance_id
    and a.token = t.number
left join rowlease.import_waits as w
    on w.instance_id = t.instance_id
    and w.token = t.number
where t.instance_id = %(id)s
    and t.status = 'cancelled'
    and t.restored_as is null
order by t.number
for update of t

-- name: restored
-- A cancelled token has one in its place.
update rowlease.workflow_tokens
set restored_as = %(new)s
where instance_id = %(id)s
    and number = %(number)s
    and restored_as is null

-- name: ask
-- An open approval of a token; a token that has one keeps it.
insert into rowlease.approvals (instance_id, token, node, who, question, choices, asked_at, due_at)
values (%(id)s, %(token)s, %(node)s, %(who)s, %(question)s, %(choices)s, %(now)s, %(due_at)s)
on conflict on constraint approvals_one_per_token do nothing

-- name: lock_approval
-- Locks an approval, after its instance and tokens.
select
    id, instance_id, token, node, status, who, question, choices, asked_at, due_at, ended_at, answered_by, choice, note
from rowlease.approvals
where id = %(id)s
for update

-- name: answer
-- The first answer stands.
update rowlease.approvals
set status = 'answered',
    answered_by = %(by)s,
    choice = %(choice)s,
    note = %(note)s,
    ended_at = %(now)s
where id = %(id)s
    and status = 'open'
returning id

-- name: time_out
-- Nobody answered the approval of this token in time.
update rowlease.approvals
set status = 'timed_out',
    ended_at = %(now)s
where instance_id = %(id)s
    and token = %(token)s
    and status = 'open'
returning id

-- name: approvals
-- Approvals, the oldest first, with the workflow they belong to.
select
    a.id, a.instance_id, a.token, a.node, a.status, a.who, a.question, a.choices, a.asked_at,
    a.due_at, a.ended_at, a.answered_by, a.choice, a.note,
    i.workflow_name, i.workflow_version
from rowlease.approvals as a
join rowlease.workflow_instances as i
    on i.id = a.instance_id
where (%(status)s::text is null or a.status = %(status)s)
    and (%(who)s::text is null or a.who = '{}' or %(who)s = any(a.who))
    and (%(instance_id)s::bigint is null or a.instance_id = %(instance_id)s)
    and (%(id)s::bigint is null or a.id = %(id)s)
order by a.id

-- name: newest_form
-- The newest version of a form.
select name, version, digest, definition
from rowlease.forms
where name = %(name)s
order by version desc
limit 1

-- name: hold_job
-- Keeps an import job from ending until the transaction ends, and says how it stands.
select id, status, fence
from rowlease.import_jobs
where id = %(id)s
for share

-- name: wait_for_job
-- A token waits for the end of an import job; only messages of a later end are for it.
insert into rowlease.import_waits (instance_id, token, job_id, job_fence, own)
values (%(id)s, %(token)s, %(job_id)s, %(job_fence)s, %(own)s)
on conflict (instance_id, token) do nothing

-- name: waiting_for_job
-- The tokens for which the end of a job is meant, by instance.
select w.instance_id, w.token
from rowlease.import_waits as w
join rowlease.workflow_tokens as t
    on t.instance_id = w.instance_id
    and t.number = w.token
where w.job_id = %(job_id)s
    and w.job_fence < %(fence)s
    and t.status = 'active'
order by w.instance_id, w.token

-- name: instance
-- One instance.
select
    id, workflow_name as workflow, workflow_version as version, start_key as key, status, variables, failed_node,
    last_error, created_by, created_at, finished_at
from rowlease.workflow_instances
where id = %(id)s

-- name: instances
-- The newest instances, newest first.
select
    id, workflow_name as workflow, workflow_version as version, start_key as key, status, variables, failed_node,
    last_error, created_by, created_at, finished_at
from rowlease.workflow_instances
where (%(workflow)s::text is null or workflow_name = %(workflow)s)
    and (%(status)s::text is null or status = %(status)s)
order by id desc
limit %(limit)s

-- name: history
-- What happened to an instance, oldest first.
select at, node, token, what, duration, detail
from rowlease.workflow_events
where instance_id = %(id)s
order by id

-- name: waits
-- What the active tokens of instances wait for.
select
    t.instance_id, t.number as token, t.node, t.entered_at as since, j.id as timer_id, j.due_at, j.lease_until,
    j.last_error as timer_error, a.id as approval_id, a.who, a.question, a.choices, a.due_at as answer_until,
    w.job_id, job.status as job_status, (began.detail ->> 'run')::bigint as run, run.status as run_status,
    (
        select m.last_error
        from rowlease.outbox_messages as m
        where m.key = 'import_job:' || w.job_id
            and m.status in ('pending', 'delivering')
        order by m.id
        limit 1
    ) as message_error
from rowlease.workflow_tokens as t
left join rowlease.timer_jobs as j
    on j.instance_id = t.instance_id
    and j.token = t.number
    and j.status in ('pending', 'processing')
left join rowlease.approvals as a
    on a.instance_id = t.instance_id
    and a.token = t.number
    and a.status = 'open'
left join rowlease.import_waits as w
    on w.instance_id = t.instance_id
    and w.token = t.number
left join rowlease.import_jobs as job
    on job.id = w.job_id
left join rowlease.workflow_events as began
    on began.instance_id = t.instance_id
    and began.token = t.number
    and began.what = 'waits'
left join rowlease.task_runs as run
    on run.id = (began.detail ->> 'run')::bigint
where t.instance_id = any(%(ids)s)
    and t.status = 'active'
order by t.instance_id, t.number

-- name: marked
-- The nodes of an instance on which tokens stand, and those that tokens have passed.
select node, status, count(*) as tokens
from rowlease.workflow_tokens
where instance_id = %(id)s
group by node, status

-- name: workers
-- How many workers listen just now, and what time it is for them.
select
    (
        select count(*)
        from pg_stat_activity
        where datname = current_database()
            and application_name = 'rowlease worker'
    ) as workers,
    rowlease.clock() as now
