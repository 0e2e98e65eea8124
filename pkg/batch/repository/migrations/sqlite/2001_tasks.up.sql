-- Schema 2.1: tasks, their attempts and decisions, workers and the leader. No index holds
-- a column that a heartbeat changes. Times are microseconds since 1970 in UTC.

CREATE TABLE IF NOT EXISTS "{{prefix}}task_group" (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    title               TEXT NOT NULL DEFAULT '',
    budget              TEXT NOT NULL, -- JSON
    decider             TEXT NOT NULL DEFAULT '',
    task_count          INTEGER NOT NULL,
    idempotency_key     TEXT UNIQUE,
    request_hash        TEXT NOT NULL DEFAULT '', -- of what was submitted under the key
    max_total_attempts  INTEGER NOT NULL DEFAULT 0, -- of the budget; 0: none
    counted_after       INTEGER NOT NULL DEFAULT 0, -- the newest attempt when the budget began anew
    deadline_at         INTEGER,
    cancel_requested_at INTEGER,
    step_execution_id   INTEGER, -- of the step that submitted it and waits for it; NULL: no step did
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}task_group_step" ON "{{prefix}}task_group" (step_execution_id) WHERE step_execution_id IS NOT NULL;

CREATE TABLE IF NOT EXISTS "{{prefix}}task" (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id           INTEGER NOT NULL REFERENCES "{{prefix}}task_group" (id),
    ordinal            INTEGER NOT NULL, -- in its group, from 1
    type               TEXT NOT NULL,
    priority           INTEGER NOT NULL,
    payload            TEXT NOT NULL DEFAULT '',
    spec               TEXT NOT NULL, -- JSON, without type, priority and payload
    timeout_us         INTEGER NOT NULL DEFAULT 0,
    state              TEXT NOT NULL,
    state_before       TEXT NOT NULL DEFAULT '',
    version            INTEGER NOT NULL DEFAULT 0,
    epoch              INTEGER NOT NULL DEFAULT 1,
    last_move          TEXT NOT NULL DEFAULT '',
    last_epoch         INTEGER NOT NULL DEFAULT 0,
    attempt            INTEGER NOT NULL DEFAULT 0, -- assignments
    attempts           INTEGER NOT NULL DEFAULT 0, -- executions since the last re-run
    tries              INTEGER NOT NULL DEFAULT 0, -- executions, of all its re-runs
    worker             TEXT NOT NULL DEFAULT '',
    assigned_at        INTEGER,
    lease_until        INTEGER,
    confirm_until      INTEGER, -- continuation_check_deadline_at
    continuation_state TEXT NOT NULL DEFAULT 'NONE',
    leader_epoch       INTEGER NOT NULL DEFAULT 0,
    next_run_at        INTEGER, -- not before: of a delayed task and of a retry
    deadline_at        INTEGER, -- of its group
    delivered_at       INTEGER NOT NULL,
    job_definition_id  INTEGER,
    scheduled_for      TEXT, -- the local time of a schedule
    idempotency_key    TEXT UNIQUE,
    request_hash       TEXT NOT NULL DEFAULT '',
    last_error         TEXT NOT NULL DEFAULT '',
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    UNIQUE (job_definition_id, scheduled_for),
    UNIQUE (group_id, ordinal)
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}task_due" ON "{{prefix}}task" (state, next_run_at) WHERE next_run_at IS NOT NULL; -- most tasks have none
CREATE INDEX IF NOT EXISTS "{{prefix}}task_waiting" ON "{{prefix}}task" (type, priority, id) WHERE state IN ('PENDING', 'ORPHANED');
CREATE INDEX IF NOT EXISTS "{{prefix}}task_held" ON "{{prefix}}task" (worker, state) WHERE state IN ('ASSIGNED', 'RUNNING');
CREATE INDEX IF NOT EXISTS "{{prefix}}task_group_state" ON "{{prefix}}task" (group_id, state);
CREATE INDEX IF NOT EXISTS "{{prefix}}task_created" ON "{{prefix}}task" (created_at);
CREATE INDEX IF NOT EXISTS "{{prefix}}task_deadline" ON "{{prefix}}task" (deadline_at) WHERE deadline_at IS NOT NULL AND state IN ('PENDING', 'ASSIGNED', 'ORPHANED', 'RETRY_SCHEDULED');

CREATE TABLE IF NOT EXISTS "{{prefix}}task_attempt" (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id          INTEGER NOT NULL REFERENCES "{{prefix}}task" (id),
    group_id         INTEGER NOT NULL,
    number           INTEGER NOT NULL,
    epoch            INTEGER NOT NULL,
    state            TEXT NOT NULL,
    worker           TEXT NOT NULL,
    outcome          TEXT NOT NULL DEFAULT '', -- JSON, without log text
    reason           TEXT NOT NULL DEFAULT '',
    job_execution_id INTEGER,
    started_at       INTEGER NOT NULL,
    ended_at         INTEGER,
    UNIQUE (task_id, number)
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}task_attempt_group" ON "{{prefix}}task_attempt" (group_id, state, ended_at);

CREATE TABLE IF NOT EXISTS "{{prefix}}task_decision" (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id    INTEGER NOT NULL REFERENCES "{{prefix}}task" (id),
    attempt_id INTEGER,
    trigger    TEXT NOT NULL,
    policy     TEXT NOT NULL,
    decision   TEXT NOT NULL, -- JSON
    spent      TEXT NOT NULL, -- JSON
    decided_at INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}task_decision_task" ON "{{prefix}}task_decision" (task_id, id);

CREATE TABLE IF NOT EXISTS "{{prefix}}task_log" (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    attempt_id INTEGER NOT NULL REFERENCES "{{prefix}}task_attempt" (id),
    ordinal    INTEGER NOT NULL, -- its place among the artifacts of the attempt
    kind       TEXT NOT NULL, -- Stdout, Stderr
    body       TEXT, -- NULL: it is in log_ref
    log_ref    TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    UNIQUE (attempt_id, ordinal)
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}task_log_created" ON "{{prefix}}task_log" (created_at) WHERE body IS NOT NULL;

-- What an operator, or a process for another one, did to a task.
CREATE TABLE IF NOT EXISTS "{{prefix}}task_audit" (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    task_id    INTEGER NOT NULL,
    act        TEXT NOT NULL,
    actor      TEXT NOT NULL DEFAULT '',
    from_state TEXT NOT NULL DEFAULT '',
    to_state   TEXT NOT NULL DEFAULT '',
    epoch      INTEGER NOT NULL DEFAULT 0,
    detail     TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}task_audit_task" ON "{{prefix}}task_audit" (task_id, id);

CREATE TABLE IF NOT EXISTS "{{prefix}}worker" (
    name         TEXT PRIMARY KEY,
    capacity     INTEGER NOT NULL,
    types        TEXT NOT NULL, -- JSON
    parts        INTEGER NOT NULL DEFAULT 0, -- it takes parts of steps, and continues parked executions
    version      TEXT NOT NULL DEFAULT '',
    left_at      INTEGER,
    started_at   INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    lease_until  INTEGER NOT NULL
) STRICT;

-- One row: who leads. The epoch is raised at each take-over.
CREATE TABLE IF NOT EXISTS "{{prefix}}leader" (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    holder      TEXT NOT NULL,
    epoch       INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;

-- The inbox: events that came for rows of an application's tables.
CREATE TABLE IF NOT EXISTS "{{prefix}}event" (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    topic         TEXT NOT NULL,
    subject       INTEGER NOT NULL, -- the row's id
    dedupe_key    TEXT NOT NULL UNIQUE,
    payload       TEXT NOT NULL DEFAULT '',
    offers        INTEGER NOT NULL DEFAULT 0,
    offer_after   INTEGER NOT NULL, -- the version that the row must have passed
    next_offer_at INTEGER, -- not before: the handler failed
    last_error    TEXT NOT NULL DEFAULT '',
    created_at    INTEGER NOT NULL,
    processed_at  INTEGER,
    dead_at       INTEGER
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}event_open" ON "{{prefix}}event" (processed_at, created_at);
CREATE INDEX IF NOT EXISTS "{{prefix}}event_offer" ON "{{prefix}}event" (topic, created_at, id) WHERE processed_at IS NULL AND dead_at IS NULL;

CREATE TABLE IF NOT EXISTS "{{prefix}}setting" (
    name       TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL DEFAULT ''
) STRICT;
