-- Schema 2.20: since when a process leads. since belongs to since_epoch: an older program takes over without writing it.
ALTER TABLE "{{prefix}}leader" ADD COLUMN IF NOT EXISTS since timestamptz;
ALTER TABLE "{{prefix}}leader" ADD COLUMN IF NOT EXISTS since_epoch bigint NOT NULL DEFAULT 0;
