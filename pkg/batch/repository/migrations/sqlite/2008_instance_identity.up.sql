-- Schema 2.8: each instance has an identity of its own. Its number may be given again in a history that was
-- restored from a backup; what is beside the data, or in a file, is known by the identity (rule C18a).

-- An instance that was made before has no row: the names of its files and tables have its number.
CREATE TABLE IF NOT EXISTS "{{prefix}}instance_identity" (
    instance_id INTEGER PRIMARY KEY REFERENCES "{{prefix}}job_instance" (id) ON DELETE CASCADE,
    uid         TEXT NOT NULL
) STRICT;
