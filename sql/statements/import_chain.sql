-- Import jobs and what they hang on: forms, parents, undos. Nothing here is leased or locked.

-- name: form_of
-- The form that a job was submitted with.
select f.name, f.version, f.digest, f.definition
from rowlease.import_jobs as j
join rowlease.forms as f
    on f.name = j.form_name
    and f.version = j.form_version
where j.id = %(id)s

-- name: version_of
-- The version under which a form with this digest is stored.
select version
from rowlease.forms
where name = %(name)s
    and digest = %(digest)s
