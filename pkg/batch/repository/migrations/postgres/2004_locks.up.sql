-- Schema 2.4: an index of unknown outcomes.

-- The steps whose outcome is not known: an execution with one is not restarted, and hardly any has one.
CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_unknown" ON "{{prefix}}step_execution" (job_execution_id)
    WHERE status = 'UNKNOWN';
