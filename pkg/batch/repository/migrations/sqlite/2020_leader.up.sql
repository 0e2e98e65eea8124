-- Schema 2.20: since when a process leads. since belongs to since_epoch: an older program takes over without writing it.
ALTER TABLE "{{prefix}}leader" ADD COLUMN since INTEGER;
ALTER TABLE "{{prefix}}leader" ADD COLUMN since_epoch INTEGER NOT NULL DEFAULT 0;
