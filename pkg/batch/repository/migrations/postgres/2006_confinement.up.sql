-- Schema 2.6: the folders to which an execution of a client is confined.

-- JSON: the folders, and the parameters that have a value of the client. Executions that were launched
-- before have none: they restart as they did.
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN IF NOT EXISTS confinement TEXT NOT NULL DEFAULT '';
