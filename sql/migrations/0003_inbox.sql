-- The ledger of the inbox: one row per file as it stood (path and stamp), and what became of it.

create table rowlease.inbox_files (
    inbox text not null check (inbox <> ''),        -- the folder that is watched, so that two of them never mix
    path text not null check (path <> ''),          -- below the inbox, with slashes
    stamp text not null check (stamp <> ''),        -- size and times; another stamp is another state of the file
    outcome text not null default 'settling',
    content_hash text check (content_hash ~ '^[0-9a-f]{64}$'),
    form_name text,
    job_id bigint references rowlease.import_jobs (id),
    message text check (char_length(message) <= 2000),
    forms_known text,                               -- which forms there were when none took the file
    seen_at timestamptz not null default rowlease.clock(),
    ended_at timestamptz,
    primary key (inbox, path, stamp),
    constraint inbox_files_outcome_known check (outcome in ('settling', 'taken', 'refused', 'unmatched')),
    constraint inbox_files_ended_has_time check ((outcome = 'settling') = (ended_at is null)),
    constraint inbox_files_taken_has_job check (
        (outcome = 'taken') = (job_id is not null and content_hash is not null and form_name is not null)
    ),
    constraint inbox_files_not_taken_has_message check (outcome not in ('refused', 'unmatched') or message is not null)
);

create index inbox_files_job on rowlease.inbox_files (job_id);

comment on table rowlease.inbox_files is 'Files of the inbox as they stood, and what became of each; a file is looked at again when its stamp changes.';
