-- Schema 2.7: deciders of workers, and groups whose attempts came to nothing.

-- The names of the deciders that the program of a worker has, as JSON. A worker of an older program has none.
ALTER TABLE "{{prefix}}worker" ADD COLUMN deciders TEXT NOT NULL DEFAULT '[]';

-- The group reached max_no_progress: a claim counts again, under the lock of the group.
ALTER TABLE "{{prefix}}task_group" ADD COLUMN stalled INTEGER NOT NULL DEFAULT 0;
