-- Schema 2.13: the audit knows acts: what a person, a client or a duty did, in one word, and in whose name.

ALTER TABLE "{{prefix}}audit" ADD COLUMN verb TEXT NOT NULL DEFAULT ''; -- '': a transition, and not an act
ALTER TABLE "{{prefix}}audit" ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE "{{prefix}}audit" ADD COLUMN job_name TEXT NOT NULL DEFAULT '';
ALTER TABLE "{{prefix}}task_audit" ADD COLUMN verb TEXT NOT NULL DEFAULT '';
ALTER TABLE "{{prefix}}task_audit" ADD COLUMN person TEXT NOT NULL DEFAULT '';

CREATE INDEX IF NOT EXISTS "{{prefix}}audit_act" ON "{{prefix}}audit" (at, id) WHERE verb <> '';
CREATE INDEX IF NOT EXISTS "{{prefix}}task_audit_act" ON "{{prefix}}task_audit" (at, id) WHERE verb <> '';

-- What was done before: launches are known by the name that their detail has.
UPDATE "{{prefix}}audit" SET verb = CASE act WHEN 'request stop' THEN 'stop' ELSE act END, person = actor,
    job_name = CASE WHEN act IN ('purge', 'enable', 'disable', 'unregister') THEN detail ELSE '' END
    WHERE verb = '' AND step_execution_id = 0 AND actor <> ''
    AND act IN ('request stop', 'abandon', 'recover', 'purge', 'register', 'unregister', 'enable', 'disable');
UPDATE "{{prefix}}audit" SET verb = 'run', person = substr(detail, 5) WHERE verb = '' AND act = 'launch' AND detail LIKE 'for %';
UPDATE "{{prefix}}task_audit" SET verb = CASE act WHEN 'cancel_group' THEN 'cancel' ELSE act END, person = actor
    WHERE verb = '' AND act IN ('cancel', 'cancel_group', 'rerun', 'set', 'purge', 'offer') AND actor NOT IN ('', 'reaper', 'leader');
