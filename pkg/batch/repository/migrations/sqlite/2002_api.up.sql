-- The requests of clients that have a key (Idempotency-Key), so that a repetition does
-- nothing again. No foreign key: a request may outlive what it started.
CREATE TABLE IF NOT EXISTS "{{prefix}}client_request" (
    client           TEXT NOT NULL,
    request_key      TEXT NOT NULL,
    fingerprint      TEXT NOT NULL,
    job_execution_id INTEGER, -- what it has started
    answer           TEXT NOT NULL DEFAULT '', -- '': not answered yet
    created_at       INTEGER NOT NULL,
    PRIMARY KEY (client, request_key)
) STRICT;

CREATE INDEX IF NOT EXISTS "{{prefix}}client_request_created" ON "{{prefix}}client_request" (created_at);
