-- Schema 2.15: indexes by which executions are found. None has a column that a chunk commit or a heartbeat changes.

-- Executions by a parameter. Values may be long: the index has their beginning.
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_param_value" ON "{{prefix}}job_execution_param" (name, substr(value, 1, 200), job_execution_id);

-- Executions and steps with an error, or with an exit code of their own; and the executions that run.
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_said" ON "{{prefix}}job_execution" (id)
    WHERE error_text <> '' OR active = 1 OR exit_code NOT IN ('', 'COMPLETED', 'FAILED', 'STOPPED', 'NOOP', 'UNKNOWN', 'ABANDONED');
CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_said" ON "{{prefix}}step_execution" (job_execution_id, id)
    WHERE error_text <> '' OR exit_code NOT IN ('', 'COMPLETED', 'FAILED', 'STOPPED', 'NOOP', 'UNKNOWN', 'ABANDONED');

-- Executions that were asked to stop.
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_asked" ON "{{prefix}}job_execution" (id) WHERE stop_requested;
-- Executions with skipped items that were not redriven.
CREATE INDEX IF NOT EXISTS "{{prefix}}skipped_item_left" ON "{{prefix}}skipped_item" (job_execution_id) WHERE redriven_by IS NULL;
-- Executions by the actors of their acts.
CREATE INDEX IF NOT EXISTS "{{prefix}}audit_actor" ON "{{prefix}}audit" (job_execution_id, id) WHERE verb <> '';
-- How long executions took, without their rows, which are wide.
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_span" ON "{{prefix}}job_execution" (id, started_at, ended_at);
