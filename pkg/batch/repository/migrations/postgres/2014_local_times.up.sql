-- Schema 2.14: which programs read a time without an offset as a time of the job's time zone (rule D5).

-- NULL: a program made the instance, or launched the execution, that read such a time as UTC, or is too old to say.
ALTER TABLE "{{prefix}}job_instance" ADD COLUMN IF NOT EXISTS local_times boolean;
ALTER TABLE "{{prefix}}job_execution" ADD COLUMN IF NOT EXISTS local_times boolean;
