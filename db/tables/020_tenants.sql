-- Tenants, their endpoints, and who may read what of them.

CREATE TABLE workspaces (
    workspace_id uuid PRIMARY KEY DEFAULT new_id(),
    name text NOT NULL,
    status workspace_status NOT NULL DEFAULT 'active',
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Null: the status has never changed. Written by the trigger workspace_status_changed.
    status_since timestamptz DEFAULT now()
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
    CONSTRAINT kind_is_known CHECK (kind IN ('webhook_push', 'bot_webhook', 'pull_source', 'bot_api',
                                              'publication_api')),
    CONSTRAINT secret_hash_is_null_only_for_a_pull_source CHECK ((secret_hash IS NULL) = (kind = 'pull_source')),
    CONSTRAINT source_id_is_for_a_pull_source CHECK ((source_id IS NOT NULL) = (kind = 'pull_source')),
    CONSTRAINT secret_hash_is_sha256_hex CHECK (secret_hash ~ '^[0-9a-f]{64}$'),
    CONSTRAINT ingress_rps_is_a_rate CHECK (ingress_rps = 0 OR ingress_rps BETWEEN 0.000001 AND 1000000),
    CONSTRAINT max_payload_bytes_is_positive CHECK (max_payload_bytes > 0),
    CONSTRAINT hash_drop_window_is_not_negative CHECK (hash_drop_window_sec >= 0)
);

-- Each request is looked up by its secret. The index spans tenants on purpose: the secret identifies the tenant.
CREATE UNIQUE INDEX one_enabled_endpoint_per_secret ON workspace_endpoints (kind, secret_hash)
    WHERE enabled AND secret_hash IS NOT NULL;

CREATE UNIQUE INDEX one_enabled_endpoint_per_source ON workspace_endpoints (workspace_id, source_id)
    WHERE enabled AND source_id IS NOT NULL;

-- A signed request names only its endpoint; its signature proves who sent it.
CREATE INDEX workspace_endpoints_by_id ON workspace_endpoints (endpoint_id);

-- Which workspace a login of autopost_reader or autopost_payloads reads. Written by the role that creates the login; a
-- session cannot widen it by a setting of its own.
CREATE TABLE reader_logins (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    login name NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, login)
);

CREATE INDEX reader_logins_by_login ON reader_logins (login);

-- Who may look at the status page: a workspace's token sees that workspace, one without a workspace is the operator's
-- and sees all. Looked up by its hash across tenants on purpose: the token says which tenant it is.
CREATE TABLE status_tokens (
    token_hash text PRIMARY KEY,
    workspace_id uuid REFERENCES workspaces,
    label text NOT NULL,
    created_by text NOT NULL,
    reason text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    revoked_by text,
    revoked_reason text,
    CONSTRAINT token_hash_is_sha256_hex CHECK (token_hash ~ '^[0-9a-f]{64}$'),
    CONSTRAINT label_is_not_empty CHECK (label <> '')
);

CREATE UNIQUE INDEX one_living_token_per_label ON status_tokens (label) WHERE revoked_at IS NULL;
