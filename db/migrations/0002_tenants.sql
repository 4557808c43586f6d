-- Who the tenants are, and through which doors they come in.

CREATE TABLE workspaces (
    workspace_id uuid PRIMARY KEY DEFAULT new_id(),
    name text NOT NULL,
    status workspace_status NOT NULL DEFAULT 'active',
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE workspace_endpoints (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    endpoint_id uuid NOT NULL DEFAULT new_id(),
    kind text NOT NULL,
    secret_hash text,
    source_id text,
    enabled boolean NOT NULL DEFAULT true,
    ingress_rps numeric DEFAULT 5,
    max_payload_bytes int NOT NULL DEFAULT 262144,
    hash_drop_window_sec int NOT NULL DEFAULT 10,
    meta jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, endpoint_id),
    CONSTRAINT kind_is_known CHECK (kind IN ('webhook_push', 'bot_webhook', 'pull_source', 'bot_api')),
    CONSTRAINT secret_hash_is_null_only_for_a_pull_source CHECK ((secret_hash IS NULL) = (kind = 'pull_source')),
    CONSTRAINT source_id_is_for_a_pull_source CHECK ((source_id IS NOT NULL) = (kind = 'pull_source')),
    CONSTRAINT secret_hash_is_sha256_hex CHECK (secret_hash ~ '^[0-9a-f]{64}$'),
    CONSTRAINT ingress_rps_is_not_negative CHECK (ingress_rps >= 0),
    CONSTRAINT max_payload_bytes_is_positive CHECK (max_payload_bytes > 0),
    CONSTRAINT hash_drop_window_is_not_negative CHECK (hash_drop_window_sec >= 0)
);

-- The lookup of every request. It spans tenants on purpose: the secret says which tenant it is.
CREATE UNIQUE INDEX one_enabled_endpoint_per_secret ON workspace_endpoints (kind, secret_hash)
    WHERE enabled AND secret_hash IS NOT NULL;
CREATE UNIQUE INDEX one_enabled_endpoint_per_source ON workspace_endpoints (workspace_id, source_id)
    WHERE enabled AND source_id IS NOT NULL;
