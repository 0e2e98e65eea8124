-- Schema 2.18: the steps of an execution, without their parts, of which it may have 100,000.
CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_main" ON "{{prefix}}step_execution" (job_execution_id, id) WHERE manager_id IS NULL;
