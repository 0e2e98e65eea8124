-- Schema 1.1: restarts that count on, gates, the filters of listings and of purges.
-- Only adds: a binary that knows 1.0 goes on with it, and its rows get the defaults.
-- SQLite cannot add a column that may be there, and need not: here a migration
-- happens wholly or not at all, together with the record of its version.

-- How often the instance was launched: more than once, and there is an execution.
ALTER TABLE "{{prefix}}job_instance" ADD COLUMN attempts INTEGER NOT NULL DEFAULT 1;

ALTER TABLE "{{prefix}}job_execution" ADD COLUMN gate TEXT NOT NULL DEFAULT '';

-- What the attempts before had counted, summed, as JSON.
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN before_counts TEXT NOT NULL DEFAULT '';
-- What a failed attempt had counted and not committed, as JSON.
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN in_hand_counts TEXT NOT NULL DEFAULT '';
-- The first of the attempts that this one goes on from: 0 for one that began anew, NULL
-- where nobody wrote it down.
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN first_id INTEGER;
-- Of two copies of the context that are written, the one of the greater revision stays.
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN context_revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN gate TEXT NOT NULL DEFAULT '';
-- The attempt itself recorded its end, after its components were closed.
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN closed INTEGER NOT NULL DEFAULT 0;

-- The execution that ran this one as a step.
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN parent_id INTEGER;
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN parent_call INTEGER;
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_parent" ON "{{prefix}}job_execution" (parent_id) WHERE parent_id IS NOT NULL;

CREATE INDEX IF NOT EXISTS "{{prefix}}job_instance_job" ON "{{prefix}}job_instance" (job_name, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_exit" ON "{{prefix}}job_execution" (exit_code, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_job_exit" ON "{{prefix}}job_execution" (job_name, exit_code, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_created" ON "{{prefix}}job_execution" (created_at, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_ended" ON "{{prefix}}job_execution" (ended_at, id);

-- A handful of rows: the steps that are not over.
CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_open" ON "{{prefix}}step_execution" (job_execution_id, id)
    WHERE status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING');
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN last_move TEXT NOT NULL DEFAULT '';
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN last_epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN last_move TEXT NOT NULL DEFAULT '';
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN last_epoch INTEGER NOT NULL DEFAULT 0;
