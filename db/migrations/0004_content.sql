-- What is posted: stored once, whatever the number of channels.

CREATE TABLE messages (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    message_id uuid NOT NULL DEFAULT new_id(),
    hash_version int NOT NULL DEFAULT 1,
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
CREATE INDEX messages_by_tag ON messages USING gin (tags);

-- The text and plan that a render profile made of a message. Never changed: a repost or a new template
-- version adds a row, and what a live delivery will send stays what it was.
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
    FOREIGN KEY (workspace_id, message_id) REFERENCES messages ON DELETE CASCADE,
    CONSTRAINT a_plan_has_calls CHECK (calls > 0)
);

CREATE TABLE media_origin (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    blob_ref text NOT NULL,
    origin_url text NOT NULL,
    sha256 text,
    content_type text,
    size_bytes bigint,
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    ref_count bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, blob_ref)
);

-- What a provider already holds of a blob. bot_id is the provider's bot, not its token: a rotated token
-- keeps the cache, another bot has its own.
CREATE TABLE media_blobs (
    workspace_id uuid NOT NULL,
    blob_ref text NOT NULL,
    provider text NOT NULL,
    bot_id text NOT NULL DEFAULT '',
    file_id text,
    url text,
    expires_at timestamptz,
    meta jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, blob_ref, provider, bot_id),
    FOREIGN KEY (workspace_id) REFERENCES workspaces
);
