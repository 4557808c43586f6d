-- Stored media: where the bytes are, what providers hold of them, and fetches under way.

CREATE TABLE media_origin (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    blob_ref text NOT NULL,
    origin_url text NOT NULL,
    sha256 text,
    content_type text,
    size_bytes bigint,
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    width int,
    height int,
    name text,
    -- Deletion in progress; deletion_token identifies the job. Readers do not see the row. A fetch of the same bytes
    -- waits until the deletion has finished or its lease has expired.
    deleting_until timestamptz,
    deletion_token uuid,
    PRIMARY KEY (workspace_id, blob_ref),
    CONSTRAINT a_deletion_has_an_end CHECK ((deleting_until IS NULL) = (deletion_token IS NULL))
);

CREATE INDEX media_origin_by_age ON media_origin (last_seen_at);

CREATE INDEX media_origin_being_deleted ON media_origin (deleting_until) WHERE deleting_until IS NOT NULL;

-- What a provider already holds of a blob. bot_id is the provider's bot, not its token: a rotated token
-- keeps the cache, another bot has its own.
CREATE TABLE media_blobs (
    workspace_id uuid NOT NULL,
    blob_ref text NOT NULL,
    provider text NOT NULL,
    bot_id text NOT NULL DEFAULT '',
    file_id text,
    expires_at timestamptz,
    meta jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- The claim that uploads it now. The upload ends with that claim.
    upload_delivery_id uuid,
    upload_token uuid,
    PRIMARY KEY (workspace_id, blob_ref, provider, bot_id),
    FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT an_upload_is_a_claim CHECK ((upload_delivery_id IS NULL) = (upload_token IS NULL))
);

-- A fetch of media. It belongs to the lease of a staged post and ends with that lease.
CREATE TABLE media_fetches (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    url_hash text NOT NULL,
    post_id uuid,
    lease_token uuid,
    blob_ref text,
    -- Objects that the fetch was about to write and that media_origin does not have yet: they may exist.
    puts text[] NOT NULL DEFAULT '{}',
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    PRIMARY KEY (workspace_id, url_hash),
    CONSTRAINT a_fetch_belongs_to_a_lease CHECK ((post_id IS NULL) = (lease_token IS NULL)),
    CONSTRAINT what_is_finished_is_known CHECK ((finished_at IS NULL) = (blob_ref IS NULL))
);

CREATE INDEX media_fetches_by_age ON media_fetches (workspace_id, started_at);

CREATE INDEX media_fetches_putting ON media_fetches (started_at) WHERE puts <> '{}';
