-- The demo's own table: dropped before, counted after. Braces are filled with the demo's table, never with values.

-- name: drop_table
-- Nothing of an earlier demo is left in the way.
drop table if exists {table}

-- name: committed
-- The cursor and the rows of the table as of one moment: they agree, or the promise is broken.
select
    j.success_rows,
    j.failed_rows,
    (
        select count(*)
        from {table} as t
        where t.import_job_id = j.id
    ) as table_rows,
    (
        select count(distinct f.source_row)
        from rowlease.import_row_faults as f
        where f.job_id = j.id
    ) as fault_rows
from rowlease.import_jobs as j
where j.id = %(id)s

-- name: proof
-- What is in the table after all: rows, rows whose key another row has too, and the sum of an exact column.
select
    count(*) as table_rows,
    count(*) - count(distinct (t.site_code, t.day)) as duplicates,
    coalesce(sum(t.cost), 0) as cost
from {table} as t
