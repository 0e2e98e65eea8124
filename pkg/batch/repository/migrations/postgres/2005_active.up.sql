-- Schema 2.5: an end of an execution that no foreign key waits for. It is a migration of its own, as it
-- locks another table than 2.4: jobs that run lock both, one after the other.

-- The strongest lock first: two processes that hold a weaker one would wait for each other.
LOCK TABLE "{{prefix}}job_execution" IN ACCESS EXCLUSIVE MODE;

-- Of the executions of an instance one is active. The index is partial: an UPDATE of a column of
-- a whole unique index locks the row against foreign keys, too. The end of an execution, which sets
-- active, would wait for a chunk that has locked its step, and the chunk's skipped items for the execution.
CREATE UNIQUE INDEX IF NOT EXISTS "{{prefix}}job_execution_active" ON "{{prefix}}job_execution" (instance_id) WHERE active = 1;

DO $$
DECLARE whole text;
BEGIN
    SELECT c.conname INTO whole FROM pg_constraint c
        WHERE c.conrelid = '"{{prefix}}job_execution"'::regclass AND c.contype = 'u'
        AND (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_attribute a
             WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)) = ARRAY['active', 'instance_id'];
    IF FOUND THEN
        EXECUTE format('ALTER TABLE "{{prefix}}job_execution" DROP CONSTRAINT %I', whole);
    END IF;
END $$;
