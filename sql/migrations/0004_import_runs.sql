-- Finding the attempts of a run outside, which are asked for at every look for lost runs.

create index import_attempts_run on rowlease.import_attempts (run_ref, began) where run_ref is not null;
