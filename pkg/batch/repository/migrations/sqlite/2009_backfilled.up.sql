-- Schema 2.9: which instances a backfill made.

-- The next instance does not follow one that a backfill made. Of instances that were made before that is not known: they
-- count, as they did.
ALTER TABLE "{{prefix}}job_instance" ADD COLUMN backfilled INTEGER NOT NULL DEFAULT 0;
