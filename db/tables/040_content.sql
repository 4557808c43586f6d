-- Messages and their renderings: stored once, whatever the number of channels.

CREATE TABLE messages (
    workspace_id uuid NOT NULL,
    message_id uuid NOT NULL DEFAULT new_id(),
    hash_version int NOT NULL DEFAULT 2,
    content_hash text NOT NULL,
    normalization_version int NOT NULL DEFAULT 1,
    payload jsonb NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    source jsonb,
    source_ref text,
    first_seen_trace_id text,
    first_ingest_run_id uuid,
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    last_ingest_run_id uuid,
    seen_count bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, message_id),
    CONSTRAINT one_message_per_content UNIQUE (content_hash, hash_version, workspace_id),
    CONSTRAINT seen_count_is_positive CHECK (seen_count > 0)
) WITH (fillfactor = 80);

CREATE INDEX messages_by_creation ON messages (created_at);

CREATE INDEX messages_by_tag ON messages USING gin (tags) WHERE tags <> '{}';

CREATE INDEX messages_by_source_ref ON messages (source_ref) WHERE source_ref IS NOT NULL;

-- Finds the messages that use a media object. Messages without media are not in it.
CREATE INDEX messages_by_media ON messages USING gin ((payload -> 'media') jsonb_path_ops)
    WHERE payload -> 'media' <> '[]';

-- The text and plan that a render profile made of a message. Rows never change: a repost or a new template version adds
-- a row, so a live delivery sends what it was enqueued with. A rendering is deleted with its message. The foreign key
-- is two triggers, once per statement (has_message, message_gone).
CREATE TABLE renderings (
    workspace_id uuid NOT NULL,
    message_id uuid NOT NULL,
    plan_hash text NOT NULL,
    rendering_id uuid NOT NULL DEFAULT new_id(),
    rendered_text text NOT NULL,
    plan jsonb NOT NULL,
    calls smallint NOT NULL DEFAULT 1,
    template_version text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, rendering_id),
    CONSTRAINT one_rendering_per_plan UNIQUE (message_id, plan_hash, workspace_id),
    CONSTRAINT a_plan_has_calls CHECK (calls > 0)
);
