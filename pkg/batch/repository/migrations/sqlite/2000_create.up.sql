-- Schema 1.0. Versions are major*1000 + minor: a minor only adds (older binaries
-- go on), a major may take away (older binaries refuse). Times are microseconds
-- since 1970 in UTC. No index holds a column that a chunk commit or a heartbeat
-- changes. Every file here can be executed again: a process may be killed while it
-- migrates.

CREATE TABLE IF NOT EXISTS "{{prefix}}job_instance" (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    job_name     TEXT NOT NULL,
    instance_key TEXT NOT NULL,
    base_key     TEXT NOT NULL DEFAULT '', -- instance_key without the number of a repetition; '': a redrive
    attempts     INTEGER NOT NULL DEFAULT 1, -- launches
    created_at   INTEGER NOT NULL,
    UNIQUE (job_name, instance_key)
) STRICT;

CREATE TABLE IF NOT EXISTS "{{prefix}}job_execution" (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    instance_id     INTEGER NOT NULL REFERENCES "{{prefix}}job_instance" (id),
    job_name        TEXT NOT NULL,
    attempt         INTEGER NOT NULL,
    status          TEXT NOT NULL,
    status_before   TEXT NOT NULL DEFAULT '',
    exit_code       TEXT NOT NULL DEFAULT '',
    error_text      TEXT NOT NULL DEFAULT '',
    definition_hash TEXT NOT NULL DEFAULT '',
    definition_text TEXT NOT NULL DEFAULT '',
    definition_path TEXT NOT NULL DEFAULT '',
    definition_files TEXT NOT NULL DEFAULT '', -- JSON: the files that the job file names
    context         TEXT NOT NULL DEFAULT '',
    gate            TEXT NOT NULL DEFAULT '',
    owner           TEXT NOT NULL,
    epoch           INTEGER NOT NULL,
    last_move       TEXT NOT NULL DEFAULT '',
    last_epoch      INTEGER NOT NULL DEFAULT 0,
    active          INTEGER CHECK (active = 1),
    stop_requested  INTEGER NOT NULL DEFAULT 0,
    step_count      INTEGER NOT NULL DEFAULT 0,
    lease_until     INTEGER, -- NULL while it is parked
    deadline_at     INTEGER, -- of a parked execution
    job_time        INTEGER, -- when the instance was first launched
    created_at      INTEGER NOT NULL,
    started_at      INTEGER,
    ended_at        INTEGER,
    redrive_of      INTEGER,
    task_id         INTEGER, -- the task that ran it
    parent_id       INTEGER, -- the execution that ran this one as a step
    parent_call     INTEGER, -- the first attempt at that step
    exclusive_key   TEXT NOT NULL DEFAULT '', -- '': it shares no key but its instance
    UNIQUE (instance_id, active)
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_instance" ON "{{prefix}}job_execution" (instance_id, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_job" ON "{{prefix}}job_execution" (job_name, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_status" ON "{{prefix}}job_execution" (status, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_job_status" ON "{{prefix}}job_execution" (job_name, status, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_redrive" ON "{{prefix}}job_execution" (redrive_of, id) WHERE redrive_of IS NOT NULL;
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_task" ON "{{prefix}}job_execution" (task_id, id) WHERE task_id IS NOT NULL;
-- Of the executions with one key one is active.
CREATE UNIQUE INDEX IF NOT EXISTS "{{prefix}}job_execution_exclusive" ON "{{prefix}}job_execution" (job_name, exclusive_key) WHERE active = 1 AND exclusive_key <> '';

CREATE TABLE IF NOT EXISTS "{{prefix}}job_execution_param" (
    job_execution_id INTEGER NOT NULL REFERENCES "{{prefix}}job_execution" (id),
    name             TEXT NOT NULL,
    type             TEXT NOT NULL,
    value            TEXT NOT NULL,
    identifying      INTEGER NOT NULL,
    PRIMARY KEY (job_execution_id, name)
) STRICT;

CREATE TABLE IF NOT EXISTS "{{prefix}}step_execution" (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    job_execution_id   INTEGER NOT NULL REFERENCES "{{prefix}}job_execution" (id),
    job_name           TEXT NOT NULL,
    name               TEXT NOT NULL,
    -- The visit of the flow that the step is: see flow_visit. ordinal 0: none, as a partition;
    -- flow is the log of the branch then, if the part walks one.
    flow               TEXT NOT NULL DEFAULT '',
    ordinal            INTEGER NOT NULL DEFAULT 0,
    element            TEXT NOT NULL DEFAULT '',
    status             TEXT NOT NULL,
    status_before      TEXT NOT NULL DEFAULT '',
    exit_code          TEXT NOT NULL DEFAULT '',
    error_text         TEXT NOT NULL DEFAULT '',
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
    out                TEXT NOT NULL DEFAULT '',
    gate               TEXT NOT NULL DEFAULT '',
    -- What the attempts before had counted, summed, as JSON.
    before_counts      TEXT NOT NULL DEFAULT '',
    -- What a failed attempt had counted and not committed, as JSON.
    in_hand_counts     TEXT NOT NULL DEFAULT '',
    -- The first of the attempts that this one resumes: 0 for one that began anew, NULL
    -- where it is not known.
    first_id           INTEGER,
    -- The attempt itself recorded its end, after its components were closed.
    closed             INTEGER NOT NULL DEFAULT 0,
    last_move          TEXT NOT NULL DEFAULT '',
    last_epoch         INTEGER NOT NULL DEFAULT 0,
    -- Of a partition: the step that planned it, its own lease, how often it was assigned.
    manager_id         INTEGER,
    -- Of a step in a branch that a worker walks: the part of that branch.
    branch_id          INTEGER,
    lease_until        INTEGER,
    assigned_count     INTEGER NOT NULL DEFAULT 0,
    assigned_from      TEXT NOT NULL DEFAULT '',
    -- Of a step with partitions: how many of them are not over.
    open_parts         INTEGER NOT NULL DEFAULT 0,
    -- What workers need to know of its run, as JSON.
    shared             TEXT NOT NULL DEFAULT '',
    owner              TEXT NOT NULL,
    epoch              INTEGER NOT NULL,
    started_at         INTEGER NOT NULL,
    ended_at           INTEGER
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_job" ON "{{prefix}}step_execution" (job_execution_id, id);

CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_manager" ON "{{prefix}}step_execution" (manager_id, id) WHERE manager_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_branch" ON "{{prefix}}step_execution" (branch_id, id) WHERE branch_id IS NOT NULL;

-- The journal of the flow, together with step_execution.flow and ordinal: what a walk
-- visited that has no step execution. flow is '' for the job's own flow.
CREATE TABLE IF NOT EXISTS "{{prefix}}flow_visit" (
    job_execution_id INTEGER NOT NULL REFERENCES "{{prefix}}job_execution" (id),
    flow             TEXT NOT NULL,
    ordinal          INTEGER NOT NULL,
    element          TEXT NOT NULL,
    kind             TEXT NOT NULL,
    verdict          TEXT NOT NULL DEFAULT '',
    target           TEXT NOT NULL DEFAULT '',
    created_at       INTEGER NOT NULL,
    PRIMARY KEY (job_execution_id, flow, ordinal)
) STRICT;

-- No foreign key on redriven_by: that an item was redriven may outlive its redrive.
CREATE TABLE IF NOT EXISTS "{{prefix}}skipped_item" (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    job_execution_id  INTEGER NOT NULL REFERENCES "{{prefix}}job_execution" (id),
    step_execution_id INTEGER NOT NULL REFERENCES "{{prefix}}step_execution" (id),
    phase             TEXT NOT NULL,
    path              TEXT NOT NULL DEFAULT '',
    line              INTEGER NOT NULL DEFAULT 0,
    element_index     INTEGER NOT NULL DEFAULT 0,
    element_row       INTEGER NOT NULL DEFAULT 0,
    mark              TEXT NOT NULL DEFAULT '',
    item              TEXT NOT NULL DEFAULT '',
    raw               TEXT NOT NULL DEFAULT '',
    truncated         INTEGER NOT NULL DEFAULT 0,
    sha256            TEXT NOT NULL DEFAULT '',
    error_class       TEXT NOT NULL DEFAULT '',
    error_text        TEXT NOT NULL DEFAULT '',
    redriven_by       INTEGER,
    created_at        INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}skipped_item_job" ON "{{prefix}}skipped_item" (job_execution_id, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}skipped_item_step" ON "{{prefix}}skipped_item" (step_execution_id, id);

-- No foreign keys: what was done to an execution may outlive it.
CREATE TABLE IF NOT EXISTS "{{prefix}}audit" (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    at                INTEGER NOT NULL,
    act               TEXT NOT NULL,
    actor             TEXT NOT NULL DEFAULT '',
    job_execution_id  INTEGER NOT NULL,
    step_execution_id INTEGER NOT NULL DEFAULT 0,
    from_status       TEXT NOT NULL DEFAULT '',
    to_status         TEXT NOT NULL DEFAULT '',
    epoch             INTEGER NOT NULL DEFAULT 0,
    detail            TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}audit_job" ON "{{prefix}}audit" (job_execution_id, id);

-- Names this repository to the checkpoints that are in other databases: one row.
CREATE TABLE IF NOT EXISTS "{{prefix}}repository" (
    uid TEXT PRIMARY KEY
) STRICT;

INSERT INTO "{{prefix}}repository" (uid)
SELECT lower(hex(randomblob(16))) WHERE NOT EXISTS (SELECT 1 FROM "{{prefix}}repository");

CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_parent" ON "{{prefix}}job_execution" (parent_id) WHERE parent_id IS NOT NULL;

CREATE INDEX IF NOT EXISTS "{{prefix}}job_instance_job" ON "{{prefix}}job_instance" (job_name, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_instance_base" ON "{{prefix}}job_instance" (job_name, base_key, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_exit" ON "{{prefix}}job_execution" (exit_code, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_job_exit" ON "{{prefix}}job_execution" (job_name, exit_code, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_created" ON "{{prefix}}job_execution" (created_at, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_ended" ON "{{prefix}}job_execution" (ended_at, id);

-- A handful of rows: the steps that are not over.
CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_open" ON "{{prefix}}step_execution" (job_execution_id, id)
    WHERE status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING');
-- The parts that are not over, by age: workers ask for the first ones that wait.
CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_part" ON "{{prefix}}step_execution" (id)
    WHERE manager_id IS NOT NULL AND status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING');
-- Fewer: the steps that wait without a process.
CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_parked" ON "{{prefix}}step_execution" (job_execution_id) WHERE status = 'PARKED';

-- The parameters of the newest instance of a job that was deleted: the next one follows
-- it. Rows with an older instance_id than the others of the job do not count.
CREATE TABLE IF NOT EXISTS "{{prefix}}purged_parameter" (
    job_name    TEXT NOT NULL,
    name        TEXT NOT NULL,
    instance_id INTEGER NOT NULL,
    type        TEXT NOT NULL,
    value       TEXT NOT NULL,
    identifying INTEGER NOT NULL,
    PRIMARY KEY (job_name, name)
) STRICT;

-- The positions at which steps of the newest complete instance completed whose records were
-- deleted: what the next one reads begins there.
CREATE TABLE IF NOT EXISTS "{{prefix}}purged_position" (
    job_name    TEXT NOT NULL,
    step        TEXT NOT NULL,
    instance_id INTEGER NOT NULL,
    position    TEXT NOT NULL,
    PRIMARY KEY (job_name, step)
) STRICT;
