-- Workbooks that came from an address: which job they became, and what the server said of them.

create table rowlease.import_addresses (
    address text not null,                          -- host and path, without the query, which may be signed anew each time
    form_name text not null,
    etag text,
    last_modified text,
    size_bytes bigint,
    job_id bigint not null references rowlease.import_jobs (id) on delete cascade,
    seen_at timestamptz not null default rowlease.clock(),
    primary key (address, form_name)
);
