-- The form's own table: looked at, created, loaded, cleared. Braces are filled with quoted identifiers, never with values.
-- Lock order: the job row is locked already (fenced), then lock_target, then the table.

-- name: lock_target
-- One import at a time decides about the keys of a table; held until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('rowlease target ' || %(table)s, 0))

-- name: relation
-- What stands under the table's name, and what we may do with it.
select
    c.oid::bigint as oid,
    c.relkind::text as kind,
    current_user::text as "user",
    has_table_privilege(c.oid, 'insert') as may_insert,
    has_table_privilege(c.oid, 'select') as may_select,
    has_table_privilege(c.oid, 'delete') as may_delete,
    has_table_privilege(c.oid, 'update') as may_update
from pg_class as c
join pg_namespace as n
    on n.oid = c.relnamespace
where n.nspname = %(schema)s
    and c.relname = %(name)s

-- name: columns
-- The table's columns; a domain is seen as the type it stands on.
with recursive resolved as (
    select a.attnum, a.atttypid as type_oid, a.atttypmod as typmod, a.attnotnull as not_null
    from pg_attribute as a
    where a.attrelid = %(oid)s::oid
        and a.attnum > 0
        and not a.attisdropped
    union all
    select
        r.attnum,
        t.typbasetype,
        case when r.typmod = -1 then t.typtypmod else r.typmod end,
        r.not_null or t.typnotnull
    from resolved as r
    join pg_type as t
        on t.oid = r.type_oid
    where t.typtype = 'd'
)
select
    a.attname::text as name,
    format_type(a.atttypid, a.atttypmod) as shown,
    t.typname::text as type,
    r.typmod,
    r.not_null,
    a.atthasdef or a.attidentity <> '' as has_default,
    a.attgenerated <> '' or a.attidentity = 'a' as generated,
    (
        select array_agg(e.enumlabel::text order by e.enumsortorder)
        from pg_enum as e
        where e.enumtypid = t.oid
    ) as labels
from resolved as r
join pg_attribute as a
    on a.attrelid = %(oid)s::oid
    and a.attnum = r.attnum
join pg_type as t
    on t.oid = r.type_oid
where t.typtype <> 'd'
order by a.attnum

-- name: unique_indexes
-- The unique indexes that can hold a key: valid, immediate, whole, on plain columns.
select
    c.relname::text as name,
    array_agg(a.attname::text order by a.attname) as columns,
    coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) as nulls_clash
from pg_index as i
join pg_class as c
    on c.oid = i.indexrelid
cross join lateral unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
join pg_attribute as a
    on a.attrelid = i.indrelid
    and a.attnum = k.attnum
where i.indrelid = %(oid)s::oid
    and i.indisunique
    and i.indimmediate
    and i.indisvalid
    and i.indpred is null
    and i.indexprs is null
    and k.place <= i.indnkeyatts
group by c.relname, i.indexrelid, coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)
order by c.relname

-- name: deferrable
-- The unique and exclusion constraints that may wait for the commit: with one of them `on conflict` is refused.
select c.relname::text as name
from pg_index as i
join pg_class as c
    on c.oid = i.indexrelid
where i.indrelid = %(oid)s::oid
    and not i.indimmediate
order by c.relname

-- name: create_schema
-- The schema of a table that is to be created.
create schema if not exists {schema}

-- name: create_table
-- The form's table as the form says.
create table {table} ({columns}, import_job_id bigint not null, source_row bigint not null)

-- name: create_job_index
-- The rows of a job lie together, so a block range index finds them for next to nothing.
create index on {table} using brin (import_job_id)

-- name: create_unique_index
-- Makes a key, or a column without repeats, a matter of the database.
create unique index on {table} ({columns})

-- name: create_stage
-- Where a batch waits until its keys were looked at; empty again after each transaction.
create temporary table if not exists {stage} on commit delete rows as
select {columns}, import_job_id, source_row
from {table}
with no data

-- name: empty_stage
-- A batch that is tried again in smaller parts begins with an empty stage.
truncate {stage}

-- name: copy
-- Rows go in as CSV: an empty field is null, "" is an empty text.
copy {table} ({columns}, import_job_id, source_row) from stdin with (format csv, encoding 'utf8')

-- name: insert_stage
-- Inserts a staged batch, or a part, in sheet order; gives back the rows that were not inserted since an index had them.
with inserted as (
    insert into {table} ({columns}, import_job_id, source_row)
    select {columns}, import_job_id, source_row
    from {stage}
    where source_row between %(first)s and %(last)s
    order by source_row
    on conflict do nothing
    returning source_row
)
select s.source_row
from {stage} as s
left join inserted as i
    on i.source_row = s.source_row
where s.source_row between %(first)s and %(last)s
    and i.source_row is null
order by s.source_row

-- name: clashes
-- For rows that were not inserted: the row that has the same values in one set of columns. A later row of the same sheet
-- turned none away, whether it came with the same batch or not.
-- An array of another integer type than the column's is searched one by one: 20,000 rows take 1.1 s without the cast, 0.1 s
-- with it.
select s.source_row, t.import_job_id as job_id, t.source_row as first_row, t.ctid::text as place
from {stage} as s
join {table} as t
    on {match}
where s.source_row = any(%(rows)s::bigint[])
    and (t.import_job_id = s.import_job_id and t.source_row > s.source_row) is not true
order by s.source_row

-- name: insert_one
-- One staged row without leniency, so that PostgreSQL names the index that refuses it.
insert into {table} ({columns}, import_job_id, source_row)
select {columns}, import_job_id, source_row
from {stage}
where source_row = %(source_row)s

-- name: check_now
-- Constraints that wait for the commit are asked now, while the row that breaks them can still be told.
set constraints all immediate

-- name: delete_rows
-- The rows that a job put in.
delete from {table}
where import_job_id = %(job_id)s

-- name: patient
-- Removing the rows of a whole job may take longer than a batch may; only for this transaction.
select set_config('statement_timeout', '0', true)

-- name: count_rows
-- How many rows of a job are in the table; its block range index finds them.
select count(*) as rows
from {table}
where import_job_id = %(job_id)s

-- name: set_aside_unchanged
-- Takes staged rows out whose row is in the table as it would be after the update; not where an open job brought it, which
-- may yet take it away. Most rows of a file that is sent again go this way, without a word about each.
delete from {stage} as s
using {table} as t
where {match}
    and s.source_row between %(first)s and %(last)s
    and not ({differs})
    and (
        t.import_job_id is null
        or t.import_job_id <> %(job_id)s
        and not exists (
            select
            from rowlease.import_jobs as j
            where j.id = t.import_job_id
                and j.status in ('pending', 'running')
        )
    )
returning s.source_row

-- name: keep_before_images
-- Locks the rows that are to change, and keeps what they held; rows that would stay as they are are left alone.
insert into rowlease.import_before_images (job_id, source_row, row_key, before, after)
select
    %(job_id)s,
    s.source_row,
    to_jsonb((select held from (select {key}) as held)),
    to_jsonb((select held from (select {held}) as held)),
    to_jsonb((select held from (select {given}) as held))
from {stage} as s
join {table} as t
    on {match}
where s.source_row = any(%(rows)s::bigint[])
    and {differs}
for update of t

-- name: update_rows
-- Gives rows that were there the values of the staged rows with their key, only where these differ.
update {table} as t
set {changes}
from {stage} as s
where {match}
    and s.source_row = any(%(rows)s::bigint[])
    and {differs}
returning s.source_row

-- name: restore_rows
-- Gives updated rows back what they held, where they still hold what the job gave them.
update {table} as t
set {changes}
from rowlease.import_before_images as b
cross join lateral jsonb_populate_record(null::{table}, b.row_key) as k
cross join lateral jsonb_populate_record(null::{table}, b.before) as s
cross join lateral jsonb_populate_record(null::{table}, b.after) as a
where b.job_id = %(job_id)s
    and (%(rows)s::bigint[] is null or b.source_row = any(%(rows)s::bigint[]))
    and {match}
    and {unchanged}
returning b.source_row

-- name: before_images
-- Which rows of the job's sheet updated a row of the table, and that row's key.
select b.source_row, b.row_key
from rowlease.import_before_images as b
where b.job_id = %(job_id)s
    and (%(rows)s::bigint[] is null or b.source_row = any(%(rows)s::bigint[]))
order by b.source_row

-- name: forget_before_images
-- What was given back, or can be no more, is not kept.
delete from rowlease.import_before_images
where job_id = %(job_id)s

-- name: forget_restored
-- An update that was given back is not given back twice.
delete from rowlease.import_before_images
where job_id = %(job_id)s
    and source_row = any(%(rows)s::bigint[])

-- name: take_rows
-- Removes the rows that a job put in, where they still hold what its sheet says.
delete from {table} as t
using {stage} as s
where t.import_job_id = %(job_id)s
    and t.source_row = s.source_row
    and {same}
returning s.source_row

-- name: rows_left
-- Rows that a job put in and that somebody changed since.
select t.source_row
from {table} as t
join {stage} as s
    on t.source_row = s.source_row
where t.import_job_id = %(job_id)s
order by t.source_row

-- name: leave_rows
-- Rows of a sheet that are in the table as they are: each of several equal rows is one of the equal rows there.
insert into rowlease.import_row_matches (job_id, source_row, kind, in_job, in_row)
select %(job_id)s, s.source_row, 'left', t.import_job_id, t.source_row
from (
    select source_row, digest, row_number() over (partition by digest order by source_row) as place
    from (select source_row, md5(row({columns})::text) as digest from {stage}) as staged
    where source_row <> all(%(but)s::bigint[])
) as s
join (
    select import_job_id, source_row, digest, row_number() over (partition by digest order by import_job_id, source_row) as place
    from (select import_job_id, source_row, md5(row({columns})::text) as digest from {table}) as there
    where import_job_id is not null
        and (%(jobs)s::bigint[] is null or import_job_id = any(%(jobs)s::bigint[]))
        and import_job_id <> %(job_id)s
        and not exists (
            select
            from rowlease.import_row_matches as m
            where m.job_id = %(job_id)s
                and m.in_job = there.import_job_id
                and m.in_row = there.source_row
        )
) as t
    on t.digest = s.digest
    and t.place = s.place

-- name: leave_corrected
-- Rows that carry the origin of a failed row, which another file corrected to the same values.
insert into rowlease.import_row_matches (job_id, source_row, kind, in_job, in_row)
select %(job_id)s, s.source_row, 'left', t.import_job_id, t.source_row
from (select source_row, md5(row({columns})::text) as digest from {stage}) as s
join unnest(%(rows)s::bigint[], %(origins)s::bigint[]) as o (source_row, in_row)
    on o.source_row = s.source_row
join rowlease.import_row_matches as c
    on c.kind = 'corrects'
    and c.in_job = %(parent)s
    and c.in_row = o.in_row
join (select import_job_id, source_row, md5(row({columns})::text) as digest from {table}) as t
    on t.import_job_id = c.job_id
    and t.source_row = c.source_row
    and t.digest = s.digest
where t.import_job_id = any(%(jobs)s::bigint[])
on conflict do nothing

-- name: leave_origins
-- Rows that carry the origin of a failed row, which a file without origins may have brought to the same values: never a row
-- of the import in which it failed, nor one that corrects another row.
insert into rowlease.import_row_matches (job_id, source_row, kind, in_job, in_row)
select %(job_id)s, s.source_row, 'left', t.import_job_id, t.source_row
from (
    select staged.source_row, digest, row_number() over (partition by digest order by staged.source_row) as place
    from (select source_row, md5(row({columns})::text) as digest from {stage}) as staged
    join unnest(%(rows)s::bigint[], %(origins)s::bigint[]) as o (source_row, in_row)
        on o.source_row = staged.source_row
    where not exists (
        select
        from rowlease.import_row_matches as c
        where c.kind = 'corrects'
            and c.in_job = %(parent)s
            and c.in_row = o.in_row
    )
) as s
join (
    select import_job_id, source_row, digest, row_number() over (partition by digest order by import_job_id, source_row) as place
    from (select import_job_id, source_row, md5(row({columns})::text) as digest from {table}) as there
    where import_job_id = any(%(jobs)s::bigint[])
        and import_job_id <> %(parent)s
        and import_job_id <> %(job_id)s
        and not exists (
            select
            from rowlease.import_row_matches as m
            where (m.job_id = %(job_id)s and m.in_job = there.import_job_id and m.in_row = there.source_row)
                or (m.kind = 'corrects' and m.job_id = there.import_job_id and m.source_row = there.source_row)
        )
) as t
    on t.digest = s.digest
    and t.place = s.place

-- name: match_keys
-- Rows of a sheet whose key is in the table with other values.
insert into rowlease.import_row_matches (job_id, source_row, kind, in_job, in_row)
select %(job_id)s, s.source_row, 'changed', t.import_job_id, t.source_row
from {stage} as s
join {table} as t
    on {match}
where t.import_job_id is not null
    and (%(jobs)s::bigint[] is null or t.import_job_id = any(%(jobs)s::bigint[]))
    and t.import_job_id <> %(job_id)s
    and not exists (
        select
        from rowlease.import_row_matches as m
        where m.job_id = %(job_id)s
            and m.source_row = s.source_row
    )
on conflict do nothing

-- name: unmatched
-- How many rows of earlier imports a sheet that was sent again does not have.
select count(*) as rows
from {table} as t
where t.import_job_id <> %(job_id)s
    and t.import_job_id = any(%(jobs)s::bigint[])
    and not exists (
        select
        from rowlease.import_row_matches as m
        where m.job_id = %(job_id)s
            and m.in_job = t.import_job_id
            and m.in_row = t.source_row
    )

-- name: look_up
-- What stands beside each of these values in another table; all of it where a value stands there more than once.
select t.{named}::text as value, array_agg(t.{taken}::text order by t.{taken}) as taken
from {table} as t
where t.{named}::text = any(%(values)s::text[])
    and t.{taken} is not null
group by t.{named}::text

-- name: lock_lookup
-- One import at a time makes what is missing in a table that is looked up; held until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('rowlease lookup ' || %(table)s, 0))

-- name: create_looked_up
-- Makes a row for each value; all other columns take their defaults.
insert into {table} ({named})
select distinct made.value
from unnest(%(values)s::text[]) as made (value)
order by made.value
on conflict do nothing

-- name: names
-- What may be looked up.
select distinct t.{named}::text as value
from {table} as t
where t.{named} is not null
order by 1
limit %(limit)s

-- name: gone
-- How many rows of these imports a sheet does not have, by key or as they are.
select count(*) as rows
from {table} as t
where t.import_job_id is not null
    and t.import_job_id <> %(job_id)s
    and (%(jobs)s::bigint[] is null or t.import_job_id = any(%(jobs)s::bigint[]))
    and not exists (
        select
        from {stage} as s
        where {match}
    )

-- name: same_and_changed
-- How many staged rows are in the table as they are, and how many under their key with other values.
select
    count(*) filter (where ({held}) is not distinct from ({sent})) as same,
    count(*) filter (where ({held}) is distinct from ({sent})) as changed
from {stage} as s
join {table} as t
    on {match}
where t.import_job_id is not null
    and (%(jobs)s::bigint[] is null or t.import_job_id = any(%(jobs)s::bigint[]))
