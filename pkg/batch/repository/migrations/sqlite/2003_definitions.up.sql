-- Schema 2.3: jobs that are registered with a server. One row for each name: its id stays
-- when the files change, so that a scheduled time is one run.

CREATE TABLE IF NOT EXISTS "{{prefix}}job_definition" (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    name             TEXT NOT NULL UNIQUE,
    version          TEXT NOT NULL, -- the hash of the files
    definition_text  TEXT NOT NULL,
    definition_path  TEXT NOT NULL,
    definition_files TEXT NOT NULL, -- JSON: the files that the job file names
    schedule         TEXT NOT NULL, -- JSON; '': none
    budget           TEXT NOT NULL, -- JSON
    enabled          INTEGER NOT NULL,
    scheduled_until  INTEGER NOT NULL, -- up to here scheduled times are decided
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    updated_by       TEXT NOT NULL
) STRICT;
