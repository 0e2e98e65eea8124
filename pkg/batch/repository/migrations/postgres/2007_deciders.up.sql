-- Schema 2.7: deciders of workers, and groups whose attempts came to nothing.

-- The names of the deciders that the program of a worker has, as JSON. A worker of an older program has none.
ALTER TABLE "{{prefix}}worker" ADD COLUMN IF NOT EXISTS deciders text NOT NULL DEFAULT '[]';

-- The group reached max_no_progress: a claim counts again, under the lock of the group.
ALTER TABLE "{{prefix}}task_group" ADD COLUMN IF NOT EXISTS stalled boolean NOT NULL DEFAULT false;
