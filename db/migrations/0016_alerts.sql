-- What an alert remembers so that it is told once, its way to each target, and who may look at the status page.

-- The whole installation can be in trouble too: the zero id stands for it, and is no workspace.
-- Nothing wrote alerts before this, so nobody relied on the foreign key.
ALTER TABLE alerts
    -- squawk-ignore ban-drop-constraint
    DROP CONSTRAINT alerts_workspace_id_fkey,
    ADD COLUMN since timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN seen_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN threshold numeric NOT NULL DEFAULT 0,
    ADD COLUMN told bigint NOT NULL DEFAULT 0,
    ADD COLUMN steps int NOT NULL DEFAULT 0;

CREATE TABLE alert_notices (
    workspace_id uuid NOT NULL,
    alert_id uuid NOT NULL,
    step int NOT NULL,
    target text NOT NULL,
    kind text NOT NULL,
    notice jsonb NOT NULL,
    place bigint GENERATED ALWAYS AS IDENTITY,
    attempt int NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    last_error text,
    refused boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz,
    superseded_at timestamptz,
    PRIMARY KEY (workspace_id, alert_id, step, target),
    FOREIGN KEY (workspace_id, alert_id) REFERENCES alerts ON DELETE CASCADE,
    CONSTRAINT kind_is_known CHECK (kind IN ('opened', 'reminder', 'recovered', 'snapshot')),
    CONSTRAINT what_was_delivered_is_not_superseded CHECK (delivered_at IS NULL OR superseded_at IS NULL)
);

CREATE INDEX alert_notices_waiting ON alert_notices (target, place)
    WHERE delivered_at IS NULL AND superseded_at IS NULL;

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
    CONSTRAINT token_hash_is_sha256_hex CHECK (token_hash ~ '^[0-9a-f]{64}$'),
    CONSTRAINT label_is_not_empty CHECK (label <> '')
);

CREATE UNIQUE INDEX one_living_token_per_label ON status_tokens (label) WHERE revoked_at IS NULL;
