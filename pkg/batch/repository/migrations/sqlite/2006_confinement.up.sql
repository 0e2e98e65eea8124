-- Schema 2.6: the folders to which an execution of a client is confined.

-- JSON: the folders, and the parameters that have a value of the client. Executions that were launched
-- before have none: they restart as they did.
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN confinement TEXT NOT NULL DEFAULT '';

-- A secret in the item was masked. Of items that were stored before it is not known.
ALTER TABLE "{{prefix}}skipped_item" ADD COLUMN masked INTEGER NOT NULL DEFAULT 0;
