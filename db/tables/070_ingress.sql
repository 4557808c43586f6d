-- How posts come in: runs, receipts, rates, and posts whose media is still to be fetched. The foreign keys of runs,
-- receipts and messages are triggers (has_workspace, has_endpoint, refers_to_posts): once per statement.

CREATE TABLE ingest_runs (
    workspace_id uuid NOT NULL,
    run_id uuid NOT NULL DEFAULT new_id(),
    kind text NOT NULL,
    endpoint_id uuid,
    trace_id text,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    stats_json jsonb NOT NULL DEFAULT '{}',
    -- Of a push: its content, unless its media was still to be fetched, and its source_ref, redacted.
    message_id uuid,
    source_ref text,
    PRIMARY KEY (workspace_id, run_id),
    CONSTRAINT kind_is_known CHECK (kind IN ('push', 'pull', 'publish'))
) WITH (fillfactor = 80);

CREATE INDEX ingest_runs_by_start ON ingest_runs (started_at);

CREATE INDEX ingest_runs_by_trace ON ingest_runs (trace_id) WHERE trace_id IS NOT NULL;

CREATE INDEX ingest_runs_by_source_ref ON ingest_runs (source_ref) WHERE source_ref IS NOT NULL;

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
    -- Its post was cancelled: another payload with the same source_ref is new, the same payload is still a duplicate.
    cancelled_at timestamptz,
    PRIMARY KEY (workspace_id, receipt_id),
    CONSTRAINT endpoint_kind_is_known CHECK (endpoint_kind IN ('webhook_push', 'bot_webhook', 'pull_source', 'bot_api'))
);

CREATE UNIQUE INDEX one_receipt_per_source_ref ON ingress_receipts (source_ref, endpoint_id, workspace_id)
    WHERE source_ref IS NOT NULL;

CREATE INDEX ingress_receipts_by_hash ON ingress_receipts (payload_hash, endpoint_id, workspace_id, received_at DESC);

CREATE INDEX ingress_receipts_by_expiry ON ingress_receipts (expires_at);

-- The token bucket of an endpoint, shared by all replicas: the time at which it is full again.
CREATE TABLE ingress_gates (
    workspace_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    full_until timestamptz NOT NULL DEFAULT '-infinity',
    -- Refused requests that have no event yet, by action.
    refused jsonb NOT NULL DEFAULT '{}',
    reported_at timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (workspace_id, endpoint_id),
    FOREIGN KEY (workspace_id, endpoint_id) REFERENCES workspace_endpoints ON DELETE CASCADE
) WITH (fillfactor = 50);

CREATE INDEX ingress_gates_untold ON ingress_gates (reported_at) WHERE refused <> '{}';

-- Posts that were accepted and answered, and whose media is still to be fetched.
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
    -- Where the post came from, as its message will say it; the request does not contain it.
    source jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (workspace_id, post_id),
    FOREIGN KEY (workspace_id, endpoint_id) REFERENCES workspace_endpoints,
    CONSTRAINT status_is_known CHECK (status IN ('staged', 'fetching', 'enqueued', 'failed')),
    CONSTRAINT only_what_is_fetched_has_a_lease CHECK ((status = 'fetching') = (lease_until IS NOT NULL))
);

-- Work is chosen workspace by workspace, so that a long backlog of one does not delay the others.
CREATE INDEX staged_posts_waiting ON staged_posts (workspace_id, next_attempt_at)
    WHERE status IN ('staged', 'fetching');

CREATE INDEX staged_posts_fetching ON staged_posts (workspace_id) WHERE status = 'fetching';

CREATE INDEX staged_posts_by_run ON staged_posts (run_id);

CREATE INDEX staged_posts_finished ON staged_posts (finished_at) WHERE finished_at IS NOT NULL;
