-- Schema 2.16: the counters of steps over time (rule OP8).

-- samples is their stored form, from began_at on. epoch is the guard's: a process that lost its lease cannot write
-- over a later one. The rows go with their step, also where an older program deletes it.
CREATE TABLE IF NOT EXISTS "{{prefix}}step_series" (
    step_execution_id bigint PRIMARY KEY REFERENCES "{{prefix}}step_execution" (id) ON DELETE CASCADE,
    epoch             bigint NOT NULL,
    began_at          timestamptz NOT NULL,
    samples           bytea NOT NULL
);
