-- The schema rowlease as PostgreSQL's catalogs have it, in an order that does not depend on when a thing was made.

-- name: functions
-- One row per function: its definition.
select p.proname as name, pg_get_functiondef(p.oid) as definition
  from pg_catalog.pg_proc as p
 where p.pronamespace = 'rowlease'::regnamespace
 order by p.proname, pg_get_function_identity_arguments(p.oid);

-- name: tables
-- One row per table.
select c.oid, c.relname as name, obj_description(c.oid, 'pg_class') as comment
  from pg_catalog.pg_class as c
 where c.relnamespace = 'rowlease'::regnamespace
   and c.relkind in ('r', 'p')
 order by c.relname;

-- name: columns
-- One row per column of a table, in the table's order.
select a.attname as name,
       format_type(a.atttypid, a.atttypmod) as type,
       a.attnotnull as not_null,
       a.attidentity as identity,
       a.attgenerated as generated,
       pg_get_expr(d.adbin, d.adrelid) as value,
       col_description(a.attrelid, a.attnum) as comment
  from pg_catalog.pg_attribute as a
  left join pg_catalog.pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
 where a.attrelid = %(oid)s
   and a.attnum > 0
   and not a.attisdropped
 order by a.attnum;

-- name: constraints
-- One row per constraint of a table; not-null constraints stand with their columns.
select con.conname as name, pg_get_constraintdef(con.oid) as definition
  from pg_catalog.pg_constraint as con
 where con.conrelid = %(oid)s
   and con.contype in ('p', 'u', 'f', 'c', 'x')
 order by con.contype = 'p' desc, con.conname;

-- name: indexes
-- One row per index of a table that is no constraint's.
select pg_get_indexdef(i.indexrelid) as definition
  from pg_catalog.pg_index as i
  join pg_catalog.pg_class as c on c.oid = i.indexrelid
 where i.indrelid = %(oid)s
   and not exists (
       select
         from pg_catalog.pg_constraint as con
        where con.conindid = i.indexrelid
          and con.contype in ('p', 'u', 'x')
   )
 order by c.relname;

-- name: views
-- One row per view.
select c.relname as name,
       pg_get_viewdef(c.oid, true) as definition,
       obj_description(c.oid, 'pg_class') as comment
  from pg_catalog.pg_class as c
 where c.relnamespace = 'rowlease'::regnamespace
   and c.relkind = 'v'
 order by c.relname;
