-- Schema 2.11: placement. Work may say which workers may do it; the leader assigns it (rules PL1 to PL6).

-- The labels of a worker as JSON, the owner of its parts, when it was asked to stop, and how many slots other executions
-- have that it continues. A worker of an older program has no labels: placed work is not assigned to it.
ALTER TABLE "{{prefix}}worker" ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
ALTER TABLE "{{prefix}}worker" ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE "{{prefix}}worker" ADD COLUMN draining_at INTEGER;
ALTER TABLE "{{prefix}}worker" ADD COLUMN resuming INTEGER NOT NULL DEFAULT 0;

-- JSON: a name of a worker, or labels; '': any worker. Tasks that were submitted before have none.
ALTER TABLE "{{prefix}}task" ADD COLUMN placement TEXT NOT NULL DEFAULT '';

-- What a worker may claim does not lie among what the leader assigns, which has an index of its own.
DROP INDEX IF EXISTS "{{prefix}}task_waiting";
CREATE INDEX IF NOT EXISTS "{{prefix}}task_waiting" ON "{{prefix}}task" (type, placement, priority, id) WHERE state IN ('PENDING', 'ORPHANED');
CREATE INDEX IF NOT EXISTS "{{prefix}}task_placed" ON "{{prefix}}task" (placement, type, priority, id) WHERE state IN ('PENDING', 'ORPHANED') AND placement <> '';

-- The placements of parts and of child jobs.
CREATE TABLE IF NOT EXISTS "{{prefix}}placement" (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    part_id      INTEGER UNIQUE REFERENCES "{{prefix}}step_execution" (id) ON DELETE CASCADE,
    child_id     INTEGER UNIQUE REFERENCES "{{prefix}}job_execution" (id) ON DELETE CASCADE,
    wants        TEXT NOT NULL, -- JSON, as task.placement
    state        TEXT NOT NULL DEFAULT 'PENDING',
    state_before TEXT NOT NULL DEFAULT '',
    version      INTEGER NOT NULL DEFAULT 0,
    epoch        INTEGER NOT NULL DEFAULT 1,
    last_move    TEXT NOT NULL DEFAULT '',
    last_epoch   INTEGER NOT NULL DEFAULT 0,
    attempt      INTEGER NOT NULL DEFAULT 0, -- assignments
    worker       TEXT NOT NULL DEFAULT '',
    assigned_at  INTEGER,
    leader_epoch INTEGER NOT NULL DEFAULT 0,
    created_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}placement_open" ON "{{prefix}}placement" (state, worker, id) WHERE state <> 'ENDED';
