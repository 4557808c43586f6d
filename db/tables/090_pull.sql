-- Sources that are pulled, and how far each has been read.

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
    -- The run of the pull that holds the lease.
    run_id uuid,
    pulled_at timestamptz,
    last_error jsonb,
    PRIMARY KEY (workspace_id, source_id),
    CONSTRAINT kind_is_known CHECK (kind IN ('rss', 'api', 'db')),
    CONSTRAINT every_is_a_second_at_least CHECK (every >= interval '1 second'),
    CONSTRAINT every_is_a_year_at_most CHECK (every <= interval '1 year'),
    CONSTRAINT a_lease_is_for_a_run CHECK ((lease_token IS NULL) = (lease_until IS NULL)
                                           AND (lease_token IS NULL) = (run_id IS NULL))
);

CREATE INDEX pull_sources_due ON pull_sources (next_pull_at) WHERE enabled;

CREATE INDEX pull_sources_leased ON pull_sources (lease_until) WHERE lease_token IS NOT NULL;

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
    -- How often its item came to nothing.
    failures int NOT NULL DEFAULT 0,
    -- Since then the item counts as new, but `failures` stays.
    released_at timestamptz,
    PRIMARY KEY (workspace_id, source_id, source_ref),
    FOREIGN KEY (workspace_id, source_id) REFERENCES pull_sources ON DELETE CASCADE
);

CREATE INDEX pull_receipts_released ON pull_receipts (workspace_id, source_id, released_at)
    WHERE released_at IS NOT NULL;

ALTER TABLE workspace_endpoints ADD CONSTRAINT pull_source_exists
    FOREIGN KEY (workspace_id, source_id) REFERENCES pull_sources;
