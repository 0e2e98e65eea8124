-- Schema 1.1: restarts that count on, gates, the filters of listings and of purges.
-- Only adds: a binary that knows 1.0 goes on with it, and its rows get the defaults.

-- How often the instance was launched: more than once, and there is an execution.
ALTER TABLE "{{prefix}}job_instance" ADD COLUMN IF NOT EXISTS attempts bigint NOT NULL DEFAULT 1;

ALTER TABLE "{{prefix}}job_execution" ADD COLUMN IF NOT EXISTS gate text NOT NULL DEFAULT '';

-- What the attempts before had counted, summed, as JSON.
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN IF NOT EXISTS before_counts text NOT NULL DEFAULT '';
-- What a failed attempt had counted and not committed, as JSON.
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN IF NOT EXISTS in_hand_counts text NOT NULL DEFAULT '';
-- The first of the attempts that this one goes on from: 0 for one that began anew, NULL
-- where nobody wrote it down.
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN IF NOT EXISTS first_id bigint;
-- Of two copies of the context that are written, the one of the greater revision stays.
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN IF NOT EXISTS context_revision bigint NOT NULL DEFAULT 0;
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN IF NOT EXISTS gate text NOT NULL DEFAULT '';
-- The attempt itself recorded its end, after its components were closed.
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN IF NOT EXISTS closed boolean NOT NULL DEFAULT false;

-- The execution that ran this one as a step.
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN IF NOT EXISTS parent_id bigint;
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN IF NOT EXISTS parent_call bigint;
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_parent" ON "{{prefix}}job_execution" (parent_id) WHERE parent_id IS NOT NULL;

CREATE INDEX IF NOT EXISTS "{{prefix}}job_instance_job" ON "{{prefix}}job_instance" (job_name, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_exit" ON "{{prefix}}job_execution" (exit_code, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_job_exit" ON "{{prefix}}job_execution" (job_name, exit_code, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_created" ON "{{prefix}}job_execution" (created_at, id);
CREATE INDEX IF NOT EXISTS "{{prefix}}job_execution_ended" ON "{{prefix}}job_execution" (ended_at, id);

-- A handful of rows: the steps that are not over.
CREATE INDEX IF NOT EXISTS "{{prefix}}step_execution_open" ON "{{prefix}}step_execution" (job_execution_id, id)
    WHERE status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING');
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN IF NOT EXISTS last_move text NOT NULL DEFAULT '';
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN IF NOT EXISTS last_epoch bigint NOT NULL DEFAULT 0;
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN IF NOT EXISTS last_move text NOT NULL DEFAULT '';
ALTER TABLE "{{prefix}}step_execution" ADD COLUMN IF NOT EXISTS last_epoch bigint NOT NULL DEFAULT 0;
