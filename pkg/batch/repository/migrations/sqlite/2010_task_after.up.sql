-- Schema 2.10: tasks that wait for other tasks of their group.

-- Tasks of the group wait for others: whoever ends one of its tasks locks the group first.
ALTER TABLE "{{prefix}}task_group" ADD COLUMN ordered INTEGER NOT NULL DEFAULT 0;

-- A task, one that it waits for, and the key by which it names that one.
CREATE TABLE IF NOT EXISTS "{{prefix}}task_after" (
    task_id  INTEGER NOT NULL REFERENCES "{{prefix}}task" (id) ON DELETE CASCADE,
    needs_id INTEGER NOT NULL REFERENCES "{{prefix}}task" (id) ON DELETE CASCADE,
    needs    TEXT NOT NULL,
    PRIMARY KEY (task_id, needs_id)
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}task_after_needs" ON "{{prefix}}task_after" (needs_id);
CREATE INDEX IF NOT EXISTS "{{prefix}}task_ordered" ON "{{prefix}}task" (id) WHERE state = 'WAITING';

-- The deadline of a group holds for its tasks that are WAITING, too.
DROP INDEX IF EXISTS "{{prefix}}task_deadline";
CREATE INDEX IF NOT EXISTS "{{prefix}}task_deadline" ON "{{prefix}}task" (deadline_at) WHERE deadline_at IS NOT NULL AND state IN ('WAITING', 'PENDING', 'ASSIGNED', 'ORPHANED', 'RETRY_SCHEDULED');
