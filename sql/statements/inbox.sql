-- The ledger of the inbox. A file as it stood is one row; whoever decides about it locks that row first.
-- Lock order: the row of the file, then what a submission locks (the form's content, the import job).

-- name: known
-- What is known of these files, in each state they were seen in.
select path, stamp, outcome, forms_known, seen_at <= rowlease.clock() - %(settle)s::interval as settled,
    seen_at <= rowlease.clock() - %(patience)s::interval as patience_over
from rowlease.inbox_files
where inbox = %(inbox)s
    and path = any(%(paths)s)

-- name: see
-- The state of a file is known from now; one that is known already keeps its time.
insert into rowlease.inbox_files (inbox, path, stamp)
select %(inbox)s, file.path, file.stamp
from unnest(%(paths)s::text[], %(stamps)s::text[]) as file (path, stamp)
on conflict do nothing

-- name: forget_unsettled
-- States in which a growing file was seen on the way are no memory worth keeping.
delete from rowlease.inbox_files as old
using unnest(%(paths)s::text[], %(stamps)s::text[]) as file (path, stamp)
where old.inbox = %(inbox)s
    and old.path = file.path
    and old.stamp <> file.stamp
    and old.outcome = 'settling'

-- name: lock_file
-- The row of a file that nobody has decided about, locked until the transaction ends; no row: somebody has, or is about to.
-- A file that no form took is decided anew when the forms are others.
select path
from rowlease.inbox_files
where inbox = %(inbox)s
    and path = %(path)s
    and stamp = %(stamp)s
    and (
        outcome = 'settling'
        or (outcome = 'unmatched' and forms_known is distinct from %(forms_known)s)
    )
for update skip locked

-- name: decide
-- What became of a file.
update rowlease.inbox_files
set outcome = %(outcome)s,
    content_hash = %(content_hash)s,
    form_name = %(form_name)s,
    job_id = %(job_id)s,
    message = %(message)s,
    forms_known = %(forms_known)s,
    ended_at = rowlease.clock()
where inbox = %(inbox)s
    and path = %(path)s
    and stamp = %(stamp)s

-- name: ledger
-- The newest decisions about files of an inbox, newest first.
select path, stamp, outcome, content_hash, form_name, job_id, message, seen_at, ended_at
from rowlease.inbox_files
where inbox = %(inbox)s
order by coalesce(ended_at, seen_at) desc, path
limit %(limit)s
