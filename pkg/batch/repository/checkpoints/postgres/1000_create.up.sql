-- Checkpoints beside the data, schema 1.0: for steps that work in another database
-- than the repository's (rule C18). Versions as in migrations/.
-- Every file here can be executed again: a job makes the tables when it needs them
-- and may be killed meanwhile.

-- One row for each step of an instance. step_execution_id is the attempt that may
-- commit; counted_id is the one that the counters belong to, 0 before the first
-- commit. No index but the key, so that the updates stay HOT.
CREATE TABLE IF NOT EXISTS "{{prefix}}checkpoint" (
    repository         text NOT NULL,
    instance_id        bigint NOT NULL,
    step               text NOT NULL,
    job_name           text NOT NULL,
    step_execution_id  bigint NOT NULL,
    owner              text NOT NULL,
    epoch              bigint NOT NULL,
    counted_id         bigint NOT NULL DEFAULT 0,
    read_count         bigint NOT NULL DEFAULT 0,
    filter_count       bigint NOT NULL DEFAULT 0,
    write_count        bigint NOT NULL DEFAULT 0,
    read_skip_count    bigint NOT NULL DEFAULT 0,
    process_skip_count bigint NOT NULL DEFAULT 0,
    write_skip_count   bigint NOT NULL DEFAULT 0,
    commit_count       bigint NOT NULL DEFAULT 0,
    rollback_count     bigint NOT NULL DEFAULT 0,
    position           text NOT NULL DEFAULT '',
    context            text NOT NULL DEFAULT '',
    claimed_at         timestamptz NOT NULL,
    PRIMARY KEY (repository, instance_id, step)
) WITH (fillfactor = 70);

-- Skipped items on their way to the repository: the nth of an attempt, as JSON.
CREATE TABLE IF NOT EXISTS "{{prefix}}checkpoint_skip" (
    repository        text NOT NULL,
    step_execution_id bigint NOT NULL,
    number            bigint NOT NULL,
    item              text NOT NULL,
    PRIMARY KEY (repository, step_execution_id, number)
);
