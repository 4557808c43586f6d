-- A batch of posts is read once, into rows, and no longer looked into at every step. A route brings what is shown on it.
CREATE TYPE post AS (
    place int,
    content_hash text,
    hash_version int,
    normalization_version int,
    payload jsonb,
    tags text[],
    channels text[],
    channel_tags text[],
    source jsonb,
    source_ref text,
    scheduled_for timestamptz,
    max_attempts int,
    run_id uuid,
    trace_id text,
    traceparent text,
    batch_id uuid,
    renderings jsonb,
    request jsonb
);

-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS route_posts(uuid, jsonb, int[]);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS enqueue_posts(uuid, jsonb, int[], route[], timestamptz, boolean);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS enqueue_distinct_posts(uuid, jsonb, int[], route[], timestamptz, boolean);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS missing_profiles(uuid, jsonb);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS pass_posts(uuid, uuid, numeric, jsonb, boolean[]);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS take_receipts(uuid, uuid, int, jsonb, text[], int[]);

ALTER TYPE route
    -- squawk-ignore ban-drop-column
    DROP ATTRIBUTE rendering,
    ADD ATTRIBUTE plan_hash text,
    ADD ATTRIBUTE rendered_text text,
    ADD ATTRIBUTE plan jsonb,
    ADD ATTRIBUTE calls smallint,
    ADD ATTRIBUTE template_version text,
    ADD ATTRIBUTE problems jsonb;
