-- Schema 2.12: indexes for the metrics that are read from the history.

-- When each job completed last. Both columns are written once, at the end of an execution or before.
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_completed" ON "{{prefix}}job_execution" (job_name, ended_at)
    WHERE status = 'COMPLETED' AND redrive_of IS NULL;
-- A handful of rows: the events that are dead.
CREATE INDEX IF NOT EXISTS "{{prefix}}event_dead" ON "{{prefix}}event" (topic) WHERE dead_at IS NOT NULL;
