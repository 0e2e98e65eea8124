-- Checkpoints schema 1.1: a row says which instance it is of, and not only which number (rule C18a). instance is the
-- identity of the instance, instance_key that of its parameters; a row of an older version has neither.
-- The table is made again, as SQLite adds no column that may be there.
DROP TABLE IF EXISTS "{{prefix}}checkpoint_1001";

CREATE TABLE "{{prefix}}checkpoint_1001" (
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
    instance           TEXT NOT NULL DEFAULT '',
    instance_key       TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (repository, instance_id, step)
) STRICT;

INSERT INTO "{{prefix}}checkpoint_1001" (repository, instance_id, step, job_name, step_execution_id, owner, epoch, counted_id, read_count, filter_count, write_count, read_skip_count, process_skip_count, write_skip_count, commit_count, rollback_count, position, context, claimed_at)
    SELECT repository, instance_id, step, job_name, step_execution_id, owner, epoch, counted_id, read_count, filter_count, write_count, read_skip_count, process_skip_count, write_skip_count, commit_count, rollback_count, position, context, claimed_at FROM "{{prefix}}checkpoint";

DROP TABLE "{{prefix}}checkpoint";

ALTER TABLE "{{prefix}}checkpoint_1001" RENAME TO "{{prefix}}checkpoint";

-- What is known of the same parameters under another number.
CREATE INDEX IF NOT EXISTS "{{prefix}}checkpoint_key" ON "{{prefix}}checkpoint" (instance_key, step);
