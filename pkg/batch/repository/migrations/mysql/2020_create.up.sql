-- Schema 2.20 as a whole: there is no older history on MySQL. See the files of the other dialects for the meaning of
-- tables and columns. Each statement can be executed again, since DDL commits (rule MY9). Partial indexes are whole ones, or
-- have a generated column. There are no foreign keys but those that delete: others would lock the row of an execution
-- for each of its chunks. Keys that clients choose are binary, as every collation that MySQL and MariaDB share pads blanks.

CREATE TABLE IF NOT EXISTS "{{prefix}}job_instance" (
    id           bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_name     varchar(255) NOT NULL,
    instance_key varchar(191) NOT NULL,
    base_key     varchar(191) NOT NULL DEFAULT '',
    attempts     bigint NOT NULL DEFAULT 1,
    created_at   datetime(6) NOT NULL,
    backfilled   boolean NOT NULL DEFAULT false,
    local_times  boolean,
    UNIQUE (job_name, instance_key),
    KEY "{{prefix}}job_instance_job" (job_name, id),
    KEY "{{prefix}}job_instance_base" (job_name, base_key, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}instance_identity" (
    instance_id bigint PRIMARY KEY,
    uid         varchar(191) NOT NULL,
    FOREIGN KEY (instance_id) REFERENCES "{{prefix}}job_instance" (id) ON DELETE CASCADE
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}job_execution" (
    id               bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    instance_id      bigint NOT NULL,
    job_name         varchar(255) NOT NULL,
    attempt          integer NOT NULL,
    status           varchar(32) NOT NULL,
    status_before    varchar(32) NOT NULL DEFAULT '',
    exit_code        varchar(255) NOT NULL DEFAULT '',
    error_text       longtext NOT NULL DEFAULT (''),
    definition_hash  varchar(255) NOT NULL DEFAULT '',
    definition_text  longtext NOT NULL DEFAULT (''),
    definition_path  mediumtext NOT NULL DEFAULT (''),
    definition_files longtext NOT NULL DEFAULT (''),
    context          longtext NOT NULL DEFAULT (''),
    gate             mediumtext NOT NULL DEFAULT (''),
    owner            varchar(512) NOT NULL,
    epoch            bigint NOT NULL,
    last_move        varchar(64) NOT NULL DEFAULT '',
    last_epoch       bigint NOT NULL DEFAULT 0,
    active           smallint CHECK (active = 1),
    stop_requested   boolean NOT NULL DEFAULT false,
    step_count       bigint NOT NULL DEFAULT 0,
    lease_until      datetime(6),
    deadline_at      datetime(6),
    job_time         datetime(6),
    created_at       datetime(6) NOT NULL,
    started_at       datetime(6),
    ended_at         datetime(6),
    redrive_of       bigint,
    task_id          bigint,
    parent_id        bigint,
    parent_call      bigint,
    exclusive_key    varbinary(1024) NOT NULL DEFAULT '',
    confinement      longtext NOT NULL DEFAULT (''),
    local_times      boolean,
    exclusive_active varbinary(1024) GENERATED ALWAYS AS (CASE WHEN active = 1 AND exclusive_key <> '' THEN exclusive_key END) STORED,
    UNIQUE (instance_id, active),
    UNIQUE (job_name, exclusive_active),
    KEY "{{prefix}}job_execution_instance" (instance_id, id),
    KEY "{{prefix}}job_execution_job" (job_name, id),
    KEY "{{prefix}}job_execution_status" (status, id),
    KEY "{{prefix}}job_execution_job_status" (job_name, status, id),
    KEY "{{prefix}}job_execution_redrive" (redrive_of, id),
    KEY "{{prefix}}job_execution_task" (task_id, id),
    KEY "{{prefix}}job_execution_parent" (parent_id),
    KEY "{{prefix}}job_execution_exit" (exit_code, id),
    KEY "{{prefix}}job_execution_job_exit" (job_name, exit_code, id),
    KEY "{{prefix}}job_execution_created" (created_at, id),
    KEY "{{prefix}}job_execution_ended" (ended_at, id),
    KEY "{{prefix}}job_execution_completed" (job_name, status, ended_at),
    KEY "{{prefix}}job_execution_active" (active, id),
    KEY "{{prefix}}job_execution_asked" (stop_requested, id),
    KEY "{{prefix}}job_execution_span" (id, started_at, ended_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}job_execution_param" (
    job_execution_id bigint NOT NULL,
    name             varchar(255) NOT NULL,
    type             varchar(32) NOT NULL,
    value            longtext NOT NULL,
    identifying      boolean NOT NULL,
    value_start      varchar(200) GENERATED ALWAYS AS (substr(value, 1, 200)) STORED,
    PRIMARY KEY (job_execution_id, name),
    KEY "{{prefix}}job_execution_param_value" (name, value_start, job_execution_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}step_execution" (
    id                 bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_execution_id   bigint NOT NULL,
    job_name           varchar(255) NOT NULL,
    name               varchar(512) NOT NULL,
    flow               varchar(512) NOT NULL DEFAULT '',
    ordinal            bigint NOT NULL DEFAULT 0,
    element            varchar(512) NOT NULL DEFAULT '',
    status             varchar(32) NOT NULL,
    status_before      varchar(32) NOT NULL DEFAULT '',
    exit_code          varchar(255) NOT NULL DEFAULT '',
    error_text         longtext NOT NULL DEFAULT (''),
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
    "out"              longtext NOT NULL DEFAULT (''),
    gate               mediumtext NOT NULL DEFAULT (''),
    before_counts      mediumtext NOT NULL DEFAULT (''),
    in_hand_counts     mediumtext NOT NULL DEFAULT (''),
    first_id           bigint,
    closed             boolean NOT NULL DEFAULT false,
    last_move          varchar(64) NOT NULL DEFAULT '',
    last_epoch         bigint NOT NULL DEFAULT 0,
    manager_id         bigint,
    branch_id          bigint,
    lease_until        datetime(6),
    assigned_count     bigint NOT NULL DEFAULT 0,
    assigned_from      mediumtext NOT NULL DEFAULT (''),
    open_parts         bigint NOT NULL DEFAULT 0,
    shared             longtext NOT NULL DEFAULT (''),
    owner              varchar(512) NOT NULL,
    epoch              bigint NOT NULL,
    started_at         datetime(6) NOT NULL,
    ended_at           datetime(6),
    KEY "{{prefix}}step_execution_job" (job_execution_id, id),
    KEY "{{prefix}}step_execution_main" (job_execution_id, manager_id, id),
    KEY "{{prefix}}step_execution_manager" (manager_id, id),
    KEY "{{prefix}}step_execution_branch" (branch_id, id),
    KEY "{{prefix}}step_execution_open" (job_execution_id, status),
    KEY "{{prefix}}step_execution_part" (status, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}flow_visit" (
    job_execution_id bigint NOT NULL,
    flow             varchar(512) NOT NULL,
    ordinal          bigint NOT NULL,
    element          varchar(512) NOT NULL,
    kind             varchar(64) NOT NULL,
    verdict          mediumtext NOT NULL DEFAULT (''),
    target           mediumtext NOT NULL DEFAULT (''),
    created_at       datetime(6) NOT NULL,
    PRIMARY KEY (job_execution_id, flow, ordinal)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}skipped_item" (
    id                bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_execution_id  bigint NOT NULL,
    step_execution_id bigint NOT NULL,
    phase             varchar(32) NOT NULL,
    path              mediumtext NOT NULL DEFAULT (''),
    line              bigint NOT NULL DEFAULT 0,
    element_index     bigint NOT NULL DEFAULT 0,
    element_row       bigint NOT NULL DEFAULT 0,
    mark              longtext NOT NULL DEFAULT (''),
    item              longtext NOT NULL DEFAULT (''),
    raw               longtext NOT NULL DEFAULT (''),
    truncated         boolean NOT NULL DEFAULT false,
    masked            boolean NOT NULL DEFAULT false,
    sha256            varchar(255) NOT NULL DEFAULT '',
    error_class       varchar(255) NOT NULL DEFAULT '',
    error_text        longtext NOT NULL DEFAULT (''),
    fault             longtext NOT NULL DEFAULT (''),
    redriven_by       bigint,
    created_at        datetime(6) NOT NULL,
    KEY "{{prefix}}skipped_item_job" (job_execution_id, id),
    KEY "{{prefix}}skipped_item_step" (step_execution_id, id),
    KEY "{{prefix}}skipped_item_left" (redriven_by, job_execution_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}audit" (
    id                bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at                datetime(6) NOT NULL,
    act               varchar(64) NOT NULL,
    actor             mediumtext NOT NULL DEFAULT (''),
    job_execution_id  bigint NOT NULL,
    step_execution_id bigint NOT NULL DEFAULT 0,
    from_status       varchar(32) NOT NULL DEFAULT '',
    to_status         varchar(32) NOT NULL DEFAULT '',
    epoch             bigint NOT NULL DEFAULT 0,
    detail            longtext NOT NULL DEFAULT (''),
    verb              varchar(64) NOT NULL DEFAULT '',
    person            mediumtext NOT NULL DEFAULT (''),
    job_name          varchar(255) NOT NULL DEFAULT '',
    KEY "{{prefix}}audit_job" (job_execution_id, id),
    KEY "{{prefix}}audit_act" (verb, at, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}repository" (
    uid varchar(191) PRIMARY KEY
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT INTO "{{prefix}}repository" (uid)
SELECT uuid() FROM dual WHERE NOT EXISTS (SELECT 1 FROM "{{prefix}}repository");

CREATE TABLE IF NOT EXISTS "{{prefix}}purged_parameter" (
    job_name    varchar(255) NOT NULL,
    name        varchar(255) NOT NULL,
    instance_id bigint NOT NULL,
    type        varchar(32) NOT NULL,
    value       longtext NOT NULL,
    identifying boolean NOT NULL,
    PRIMARY KEY (job_name, name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}purged_position" (
    job_name    varchar(255) NOT NULL,
    step        varchar(512) NOT NULL,
    instance_id bigint NOT NULL,
    position    longtext NOT NULL,
    PRIMARY KEY (job_name, step)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}client_request" (
    client           varbinary(768) NOT NULL,
    request_key      varbinary(768) NOT NULL,
    fingerprint      varchar(255) NOT NULL,
    job_execution_id bigint,
    answer           longtext NOT NULL DEFAULT (''),
    created_at       datetime(6) NOT NULL,
    PRIMARY KEY (client, request_key),
    KEY "{{prefix}}client_request_created" (created_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}job_definition" (
    id               bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name             varchar(255) NOT NULL UNIQUE,
    version          varchar(255) NOT NULL,
    definition_text  longtext NOT NULL,
    definition_path  mediumtext NOT NULL,
    definition_files longtext NOT NULL,
    schedule         mediumtext NOT NULL,
    budget           mediumtext NOT NULL,
    enabled          boolean NOT NULL,
    scheduled_until  datetime(6) NOT NULL,
    created_at       datetime(6) NOT NULL,
    updated_at       datetime(6) NOT NULL,
    updated_by       mediumtext NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}task_group" (
    id                  bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    title               mediumtext NOT NULL DEFAULT (''),
    budget              mediumtext NOT NULL,
    decider             varchar(255) NOT NULL DEFAULT '',
    task_count          bigint NOT NULL,
    idempotency_key     varbinary(1024) UNIQUE,
    request_hash        varchar(255) NOT NULL DEFAULT '',
    max_total_attempts  bigint NOT NULL DEFAULT 0,
    counted_after       bigint NOT NULL DEFAULT 0,
    stalled             boolean NOT NULL DEFAULT false,
    ordered             boolean NOT NULL DEFAULT false,
    deadline_at         datetime(6),
    cancel_requested_at datetime(6),
    step_execution_id   bigint,
    created_at          datetime(6) NOT NULL,
    updated_at          datetime(6) NOT NULL,
    KEY "{{prefix}}task_group_step" (step_execution_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}task" (
    id                 bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    group_id           bigint NOT NULL,
    ordinal            bigint NOT NULL,
    type               varchar(255) NOT NULL,
    priority           smallint NOT NULL,
    payload            longtext NOT NULL DEFAULT (''),
    spec               longtext NOT NULL,
    timeout_us         bigint NOT NULL DEFAULT 0,
    state              varchar(32) NOT NULL,
    state_before       varchar(32) NOT NULL DEFAULT '',
    version            bigint NOT NULL DEFAULT 0,
    epoch              bigint NOT NULL DEFAULT 1,
    last_move          varchar(64) NOT NULL DEFAULT '',
    last_epoch         bigint NOT NULL DEFAULT 0,
    attempt            bigint NOT NULL DEFAULT 0,
    attempts           bigint NOT NULL DEFAULT 0,
    tries              bigint NOT NULL DEFAULT 0,
    worker             varchar(255) NOT NULL DEFAULT '',
    assigned_at        datetime(6),
    lease_until        datetime(6),
    confirm_until      datetime(6),
    continuation_state varchar(32) NOT NULL DEFAULT 'NONE',
    leader_epoch       bigint NOT NULL DEFAULT 0,
    next_run_at        datetime(6),
    deadline_at        datetime(6),
    delivered_at       datetime(6) NOT NULL,
    job_definition_id  bigint,
    scheduled_for      varchar(64),
    idempotency_key    varbinary(1024) UNIQUE,
    request_hash       varchar(255) NOT NULL DEFAULT '',
    last_error         longtext NOT NULL DEFAULT (''),
    placement          varchar(512) NOT NULL DEFAULT '',
    created_at         datetime(6) NOT NULL,
    updated_at         datetime(6) NOT NULL,
    UNIQUE (job_definition_id, scheduled_for),
    UNIQUE (group_id, ordinal),
    KEY "{{prefix}}task_due" (state, next_run_at),
    KEY "{{prefix}}task_waiting" (state, type, priority, id),
    KEY "{{prefix}}task_held" (worker, state),
    KEY "{{prefix}}task_group_state" (group_id, state),
    KEY "{{prefix}}task_created" (created_at),
    KEY "{{prefix}}task_deadline" (state, deadline_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}task_attempt" (
    id               bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    task_id          bigint NOT NULL,
    group_id         bigint NOT NULL,
    number           bigint NOT NULL,
    epoch            bigint NOT NULL,
    state            varchar(32) NOT NULL,
    worker           varchar(255) NOT NULL,
    outcome          longtext NOT NULL DEFAULT (''),
    reason           longtext NOT NULL DEFAULT (''),
    job_execution_id bigint,
    started_at       datetime(6) NOT NULL,
    ended_at         datetime(6),
    UNIQUE (task_id, number),
    KEY "{{prefix}}task_attempt_group" (group_id, state, ended_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}task_decision" (
    id         bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    task_id    bigint NOT NULL,
    attempt_id bigint,
    "trigger"  varchar(255) NOT NULL,
    policy     mediumtext NOT NULL,
    decision   longtext NOT NULL,
    spent      mediumtext NOT NULL,
    decided_at datetime(6) NOT NULL,
    KEY "{{prefix}}task_decision_task" (task_id, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}task_log" (
    id         bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    attempt_id bigint NOT NULL,
    ordinal    bigint NOT NULL,
    kind       varchar(64) NOT NULL,
    body       longtext,
    log_ref    mediumtext NOT NULL DEFAULT (''),
    created_at datetime(6) NOT NULL,
    UNIQUE (attempt_id, ordinal),
    KEY "{{prefix}}task_log_created" (created_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}task_audit" (
    id         bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at         datetime(6) NOT NULL,
    task_id    bigint NOT NULL,
    act        varchar(64) NOT NULL,
    actor      mediumtext NOT NULL DEFAULT (''),
    from_state varchar(32) NOT NULL DEFAULT '',
    to_state   varchar(32) NOT NULL DEFAULT '',
    epoch      bigint NOT NULL DEFAULT 0,
    detail     longtext NOT NULL DEFAULT (''),
    verb       varchar(64) NOT NULL DEFAULT '',
    person     mediumtext NOT NULL DEFAULT (''),
    KEY "{{prefix}}task_audit_task" (task_id, id),
    KEY "{{prefix}}task_audit_act" (verb, at, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}task_after" (
    task_id  bigint NOT NULL,
    needs_id bigint NOT NULL,
    needs    varchar(512) NOT NULL,
    PRIMARY KEY (task_id, needs_id),
    KEY "{{prefix}}task_after_needs" (needs_id),
    FOREIGN KEY (task_id) REFERENCES "{{prefix}}task" (id) ON DELETE CASCADE,
    FOREIGN KEY (needs_id) REFERENCES "{{prefix}}task" (id) ON DELETE CASCADE
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}worker" (
    name         varchar(255) PRIMARY KEY,
    capacity     bigint NOT NULL,
    types        mediumtext NOT NULL,
    parts        boolean NOT NULL DEFAULT false,
    version      varchar(255) NOT NULL DEFAULT '',
    deciders     mediumtext NOT NULL DEFAULT ('[]'),
    labels       mediumtext NOT NULL DEFAULT ('{}'),
    owner        varchar(512) NOT NULL DEFAULT '',
    draining_at  datetime(6),
    resuming     bigint NOT NULL DEFAULT 0,
    left_at      datetime(6),
    started_at   datetime(6) NOT NULL,
    heartbeat_at datetime(6) NOT NULL,
    lease_until  datetime(6) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}leader" (
    id          bigint PRIMARY KEY CHECK (id = 1),
    holder      varchar(255) NOT NULL,
    epoch       bigint NOT NULL,
    lease_until datetime(6) NOT NULL,
    since       datetime(6),
    since_epoch bigint NOT NULL DEFAULT 0
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}event" (
    id            bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    topic         varchar(255) NOT NULL,
    subject       bigint NOT NULL,
    dedupe_key    varbinary(1024) NOT NULL UNIQUE,
    payload       longtext NOT NULL DEFAULT (''),
    offers        bigint NOT NULL DEFAULT 0,
    offer_after   bigint NOT NULL,
    next_offer_at datetime(6),
    last_error    longtext NOT NULL DEFAULT (''),
    created_at    datetime(6) NOT NULL,
    processed_at  datetime(6),
    dead_at       datetime(6),
    KEY "{{prefix}}event_open" (processed_at, created_at),
    KEY "{{prefix}}event_offer" (topic, processed_at, dead_at, created_at, id),
    KEY "{{prefix}}event_dead" (topic, dead_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}setting" (
    name       varchar(255) PRIMARY KEY,
    value      mediumtext NOT NULL,
    updated_at datetime(6) NOT NULL,
    updated_by mediumtext NOT NULL DEFAULT ('')
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}placement" (
    id           bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    part_id      bigint UNIQUE,
    child_id     bigint UNIQUE,
    wants        varchar(512) NOT NULL,
    state        varchar(32) NOT NULL DEFAULT 'PENDING',
    state_before varchar(32) NOT NULL DEFAULT '',
    version      bigint NOT NULL DEFAULT 0,
    epoch        bigint NOT NULL DEFAULT 1,
    last_move    varchar(64) NOT NULL DEFAULT '',
    last_epoch   bigint NOT NULL DEFAULT 0,
    attempt      bigint NOT NULL DEFAULT 0,
    worker       varchar(255) NOT NULL DEFAULT '',
    assigned_at  datetime(6),
    leader_epoch bigint NOT NULL DEFAULT 0,
    created_at   datetime(6) NOT NULL,
    KEY "{{prefix}}placement_open" (state, worker, id),
    FOREIGN KEY (part_id) REFERENCES "{{prefix}}step_execution" (id) ON DELETE CASCADE,
    FOREIGN KEY (child_id) REFERENCES "{{prefix}}job_execution" (id) ON DELETE CASCADE
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}step_series" (
    step_execution_id bigint PRIMARY KEY,
    epoch             bigint NOT NULL,
    began_at          datetime(6) NOT NULL,
    samples           longblob NOT NULL,
    FOREIGN KEY (step_execution_id) REFERENCES "{{prefix}}step_execution" (id) ON DELETE CASCADE
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}execution_log" (
    job_execution_id bigint PRIMARY KEY,
    execution        bigint,
    line_count       bigint NOT NULL,
    byte_count       bigint NOT NULL,
    thinned          bigint NOT NULL,
    over_bound       bigint NOT NULL,
    lost             bigint NOT NULL,
    KEY "{{prefix}}execution_log_execution" (execution, job_execution_id),
    FOREIGN KEY (execution) REFERENCES "{{prefix}}job_execution" (id) ON DELETE SET NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS "{{prefix}}log_line" (
    job_execution_id  bigint NOT NULL,
    seq               bigint NOT NULL,
    step_execution_id bigint NOT NULL,
    step              varchar(512) NOT NULL,
    part              varchar(512) NOT NULL,
    process           mediumtext NOT NULL,
    writer            mediumtext NOT NULL,
    number            bigint NOT NULL,
    level             smallint NOT NULL,
    at                datetime(6) NOT NULL,
    event             mediumtext NOT NULL,
    message           longtext NOT NULL,
    attributes        longtext NOT NULL,
    PRIMARY KEY (job_execution_id, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
