-- How posts come in: runs, the guard's ledger, posts whose media is still to be fetched, and feeds.

CREATE TABLE ingest_runs (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    run_id uuid NOT NULL DEFAULT new_id(),
    kind text NOT NULL,
    endpoint_id uuid,
    trace_id text,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    stats_json jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (workspace_id, run_id),
    CONSTRAINT kind_is_known CHECK (kind IN ('push', 'pull', 'publish'))
) WITH (fillfactor = 80);

CREATE INDEX ingest_runs_by_start ON ingest_runs (started_at);

CREATE TABLE ingress_receipts (
    workspace_id uuid NOT NULL,
    receipt_id uuid NOT NULL DEFAULT new_id(),
    endpoint_id uuid NOT NULL,
    endpoint_kind text NOT NULL,
    source_ref text,
    payload_hash text NOT NULL,
    run_id uuid,
    received_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, receipt_id),
    FOREIGN KEY (workspace_id, endpoint_id) REFERENCES workspace_endpoints,
    CONSTRAINT endpoint_kind_is_known CHECK (endpoint_kind IN ('webhook_push', 'bot_webhook', 'pull_source', 'bot_api'))
);

CREATE UNIQUE INDEX one_receipt_per_source_ref ON ingress_receipts (source_ref, endpoint_id, workspace_id)
    WHERE source_ref IS NOT NULL;
CREATE INDEX ingress_receipts_by_hash ON ingress_receipts (payload_hash, endpoint_id, workspace_id, received_at DESC);
CREATE INDEX ingress_receipts_by_expiry ON ingress_receipts (expires_at);

-- The rate of an endpoint, shared by all replicas: the time at which its bucket is empty again.
CREATE TABLE ingress_gates (
    workspace_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    full_until timestamptz NOT NULL DEFAULT '-infinity',
    -- What was refused and not told yet, by action.
    refused jsonb NOT NULL DEFAULT '{}',
    reported_at timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (workspace_id, endpoint_id),
    FOREIGN KEY (workspace_id, endpoint_id) REFERENCES workspace_endpoints ON DELETE CASCADE
) WITH (fillfactor = 50);

-- Accepted and answered, media still to be fetched.
CREATE TABLE staged_posts (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    post_id uuid NOT NULL DEFAULT new_id(),
    endpoint_id uuid NOT NULL,
    run_id uuid NOT NULL,
    receipt_id uuid,
    trace_id text,
    traceparent text,
    request jsonb NOT NULL,
    status text NOT NULL DEFAULT 'staged',
    attempt int NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    lease_token uuid,
    lease_until timestamptz,
    message_id uuid,
    last_error jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    PRIMARY KEY (workspace_id, post_id),
    FOREIGN KEY (workspace_id, endpoint_id) REFERENCES workspace_endpoints,
    CONSTRAINT status_is_known CHECK (status IN ('staged', 'fetching', 'enqueued', 'failed'))
);

CREATE INDEX staged_posts_waiting ON staged_posts (next_attempt_at) WHERE status IN ('staged', 'fetching');

CREATE TABLE pull_sources (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    source_id text NOT NULL,
    kind text NOT NULL,
    config_json jsonb NOT NULL DEFAULT '{}',
    enabled boolean NOT NULL DEFAULT true,
    every interval NOT NULL DEFAULT '5 minutes',
    next_pull_at timestamptz NOT NULL DEFAULT now(),
    failures int NOT NULL DEFAULT 0,
    lease_token uuid,
    lease_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, source_id),
    CONSTRAINT kind_is_known CHECK (kind IN ('rss', 'api', 'db'))
);

CREATE TABLE pull_cursors (
    workspace_id uuid NOT NULL,
    source_id text NOT NULL,
    cursor_json jsonb NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, source_id),
    FOREIGN KEY (workspace_id, source_id) REFERENCES pull_sources ON DELETE CASCADE
);

CREATE TABLE pull_receipts (
    workspace_id uuid NOT NULL,
    source_id text NOT NULL,
    source_ref text NOT NULL,
    message_id uuid,
    received_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, source_id, source_ref),
    FOREIGN KEY (workspace_id, source_id) REFERENCES pull_sources ON DELETE CASCADE
);

ALTER TABLE workspace_endpoints ADD CONSTRAINT pull_source_exists
    FOREIGN KEY (workspace_id, source_id) REFERENCES pull_sources;
