-- Checkpoints beside the data, schema 1.1 (rules C18, C18a); see the files of the other dialects. Each statement can be
-- executed again, since DDL commits.
CREATE TABLE IF NOT EXISTS "{{prefix}}checkpoint" (
    repository         varchar(191) NOT NULL,
    instance_id        bigint NOT NULL,
    step               varchar(255) NOT NULL,
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
    position           longtext NOT NULL DEFAULT (''),
    context            longtext NOT NULL DEFAULT (''),
    claimed_at         datetime(6) NOT NULL,
    instance           varchar(191) NOT NULL DEFAULT '',
    instance_key       varchar(191) NOT NULL DEFAULT '',
    PRIMARY KEY (repository, instance_id, step),
    KEY "{{prefix}}checkpoint_key" (instance_key, step)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Skipped items on their way to the repository: the nth of an attempt, as JSON.
CREATE TABLE IF NOT EXISTS "{{prefix}}checkpoint_skip" (
    repository        varchar(255) NOT NULL,
    step_execution_id bigint NOT NULL,
    number            bigint NOT NULL,
    item              longtext NOT NULL,
    PRIMARY KEY (repository, step_execution_id, number)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
