-- A corrected file, or one that is nearly the same, against what is in the table: which row of its sheet is which row there.

create table rowlease.import_row_matches (
    job_id bigint not null references rowlease.import_jobs (id) on delete cascade,
    source_row bigint not null check (source_row > 0),          -- of the sheet that was sent again
    kind text not null check (kind in ('left', 'changed', 'corrects')),
    in_job bigint not null references rowlease.import_jobs (id) on delete cascade,
    in_row bigint not null,                                     -- left, changed: the row in the table; corrects: the failed one
    primary key (job_id, source_row)
);

create unique index import_row_matches_once on rowlease.import_row_matches (job_id, in_job, in_row);

-- A failed row is corrected once, whatever file brings it.
create unique index import_row_matches_corrected on rowlease.import_row_matches (in_job, in_row) where kind = 'corrects';

comment on table rowlease.import_row_matches is 'Rows of a sheet sent again: left as they are in the table, changed since, or corrections of failed rows.';
