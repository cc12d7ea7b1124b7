-- Workbooks from an address.
-- Lock order: the import job, then its address.

-- name: known
-- What an address became before, and whether that job is still open.
select
    known.etag, known.last_modified, known.size_bytes, known.job_id, job.status in ('pending', 'running') as open
from rowlease.import_addresses as known
join rowlease.import_jobs as job on job.id = known.job_id
where known.address = %(address)s
    and known.form_name = %(form_name)s

-- name: put
-- What an address became now.
insert into rowlease.import_addresses (address, form_name, etag, last_modified, size_bytes, job_id)
values (%(address)s, %(form_name)s, %(etag)s, %(last_modified)s, %(size_bytes)s, %(job_id)s)
on conflict (address, form_name) do update
set etag = excluded.etag,
    last_modified = excluded.last_modified,
    size_bytes = excluded.size_bytes,
    job_id = excluded.job_id,
    seen_at = rowlease.clock()
