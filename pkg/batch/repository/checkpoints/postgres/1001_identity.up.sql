-- Checkpoints schema 1.1: a row says which instance it is of, and not only which number (rule C18a). instance is the
-- identity of the instance, instance_key that of its parameters; a row of an older version has neither.
ALTER TABLE "{{prefix}}checkpoint" ADD COLUMN IF NOT EXISTS instance text NOT NULL DEFAULT '';
ALTER TABLE "{{prefix}}checkpoint" ADD COLUMN IF NOT EXISTS instance_key text NOT NULL DEFAULT '';

-- What is known of the same parameters under another number.
CREATE INDEX IF NOT EXISTS "{{prefix}}checkpoint_key" ON "{{prefix}}checkpoint" (instance_key, step);
