-- The requests of clients that have a key (Idempotency-Key), so that a repetition does
-- nothing again. No foreign key: a request may outlive what it started.
CREATE TABLE IF NOT EXISTS "{{prefix}}client_request" (
    client           text NOT NULL,
    request_key      text NOT NULL,
    fingerprint      text NOT NULL,
    job_execution_id bigint,  -- what it has started
    answer           text NOT NULL DEFAULT '', -- '': not answered yet
    created_at       timestamptz NOT NULL,
    PRIMARY KEY (client, request_key)
);

CREATE INDEX IF NOT EXISTS "{{prefix}}client_request_created" ON "{{prefix}}client_request" (created_at);
