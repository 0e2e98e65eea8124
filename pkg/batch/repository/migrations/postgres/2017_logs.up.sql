-- Schema 2.17: a log for each execution (rule LG1).

-- How much of its log an execution has. "execution" is NULL when the execution was purged, by whatever
-- version of the program: its lines are deleted afterwards, in batches.
CREATE TABLE IF NOT EXISTS "{{prefix}}execution_log" (
    job_execution_id bigint PRIMARY KEY,
    execution        bigint REFERENCES "{{prefix}}job_execution" (id) ON DELETE SET NULL,
    line_count       bigint NOT NULL,
    byte_count       bigint NOT NULL,
    thinned          bigint NOT NULL,
    over_bound       bigint NOT NULL,
    lost             bigint NOT NULL
);

CREATE INDEX IF NOT EXISTS "{{prefix}}execution_log_execution" ON "{{prefix}}execution_log" (execution, job_execution_id);

CREATE TABLE IF NOT EXISTS "{{prefix}}log_line" (
    job_execution_id  bigint NOT NULL,
    seq               bigint NOT NULL,
    step_execution_id bigint NOT NULL, -- 0: of no step
    step              text NOT NULL,
    part              text NOT NULL,
    process           text NOT NULL,
    writer            text NOT NULL, -- with number the line, whatever became of the answer to its writer
    number            bigint NOT NULL,
    level             smallint NOT NULL, -- of log/slog: 0 is INFO, 4 is WARN
    at                timestamptz NOT NULL, -- of the process
    event             text NOT NULL,
    message           text NOT NULL,
    attributes        text NOT NULL, -- a JSON object, or ''
    PRIMARY KEY (job_execution_id, seq)
);
