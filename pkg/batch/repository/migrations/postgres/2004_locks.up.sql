-- Schema 2.4: an index of unknown outcomes, and an end of an execution that no foreign key waits for.

-- The steps whose outcome is not known: an execution with one is not restarted, and hardly any has one.
CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_unknown" ON "{{prefix}}step_execution" (job_execution_id)
    WHERE status = 'UNKNOWN';

-- Of the executions of an instance one is active. The index is partial: an UPDATE of a column of
-- a whole unique index locks the row against foreign keys, too. The end of an execution, which sets
-- active, would wait for a chunk that has locked its step, and the chunk's skipped items for the execution.
CREATE UNIQUE INDEX IF NOT EXISTS "{{prefix}}job_execution_active" ON "{{prefix}}job_execution" (instance_id) WHERE active = 1;

DO $$
DECLARE whole text;
BEGIN
    SELECT conname INTO whole FROM pg_constraint WHERE conrelid = '"{{prefix}}job_execution"'::regclass AND contype = 'u';
    IF FOUND THEN
        EXECUTE format('ALTER TABLE "{{prefix}}job_execution" DROP CONSTRAINT %I', whole);
    END IF;
END $$;
