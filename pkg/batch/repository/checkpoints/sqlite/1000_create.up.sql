-- Checkpoints beside the data, schema 1.0: for steps that work in another database
-- than the repository's (rule C18). Versions as in migrations/.
-- Every file here can be executed again: a job makes the tables when it needs them
-- and may be killed meanwhile.

-- One row for each step of an instance. step_execution_id is the attempt that may
-- commit; counted_id is the one that the counters belong to, 0 before the first
-- commit.
CREATE TABLE IF NOT EXISTS "{{prefix}}checkpoint" (
    repository         TEXT NOT NULL,
    instance_id        INTEGER NOT NULL,
    step               TEXT NOT NULL,
    job_name           TEXT NOT NULL,
    step_execution_id  INTEGER NOT NULL,
    owner              TEXT NOT NULL,
    epoch              INTEGER NOT NULL,
    counted_id         INTEGER NOT NULL DEFAULT 0,
    read_count         INTEGER NOT NULL DEFAULT 0,
    filter_count       INTEGER NOT NULL DEFAULT 0,
    write_count        INTEGER NOT NULL DEFAULT 0,
    read_skip_count    INTEGER NOT NULL DEFAULT 0,
    process_skip_count INTEGER NOT NULL DEFAULT 0,
    write_skip_count   INTEGER NOT NULL DEFAULT 0,
    commit_count       INTEGER NOT NULL DEFAULT 0,
    rollback_count     INTEGER NOT NULL DEFAULT 0,
    position           TEXT NOT NULL DEFAULT '',
    context            TEXT NOT NULL DEFAULT '',
    claimed_at         INTEGER NOT NULL,
    PRIMARY KEY (repository, instance_id, step)
) STRICT;

-- Skipped items on their way to the repository: the nth of an attempt, as JSON.
CREATE TABLE IF NOT EXISTS "{{prefix}}checkpoint_skip" (
    repository        TEXT NOT NULL,
    step_execution_id INTEGER NOT NULL,
    number            INTEGER NOT NULL,
    item              TEXT NOT NULL,
    PRIMARY KEY (repository, step_execution_id, number)
) STRICT;
