-- Schema 2.17: a log for each execution (rule LG1).

-- How much of its log an execution has. "execution" is NULL when the execution was purged, by whatever
-- version of the program: its lines are deleted afterwards, in batches.
CREATE TABLE IF NOT EXISTS "{{prefix}}execution_log" (
    job_execution_id INTEGER PRIMARY KEY,
    execution        INTEGER REFERENCES "{{prefix}}job_execution" (id) ON DELETE SET NULL,
    line_count       INTEGER NOT NULL,
    byte_count       INTEGER NOT NULL,
    thinned          INTEGER NOT NULL,
    over_bound       INTEGER NOT NULL,
    lost             INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS "{{prefix}}execution_log_execution" ON "{{prefix}}execution_log" (execution, job_execution_id);

CREATE TABLE IF NOT EXISTS "{{prefix}}log_line" (
    job_execution_id  INTEGER NOT NULL,
    seq               INTEGER NOT NULL,
    step_execution_id INTEGER NOT NULL, -- 0: of no step
    step              TEXT NOT NULL,
    part              TEXT NOT NULL,
    process           TEXT NOT NULL,
    writer            TEXT NOT NULL, -- with number the line, whatever became of the answer to its writer
    number            INTEGER NOT NULL,
    level             INTEGER NOT NULL, -- of log/slog: 0 is INFO, 4 is WARN
    at                INTEGER NOT NULL, -- of the process
    event             TEXT NOT NULL,
    message           TEXT NOT NULL,
    attributes        TEXT NOT NULL, -- a JSON object, or ''
    PRIMARY KEY (job_execution_id, seq)
);
