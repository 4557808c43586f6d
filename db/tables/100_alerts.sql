-- Alerts and their notices.

-- An alert about the whole installation has the zero id as its workspace.
CREATE TABLE alerts (
    workspace_id uuid NOT NULL,
    alert_id uuid NOT NULL DEFAULT new_id(),
    condition text NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now(),
    reminded_at timestamptz,
    recovered_at timestamptz,
    -- When the first target got a notice.
    delivered_at timestamptz,
    -- How many things are in this condition, as of seen_at: when the condition was last found.
    occurrences bigint NOT NULL DEFAULT 1,
    causes jsonb NOT NULL DEFAULT '[]',
    since timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now(),
    threshold numeric NOT NULL DEFAULT 0,
    -- The occurrences of the last notice, and how many notices there were.
    told bigint NOT NULL DEFAULT 0,
    steps int NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, alert_id)
);

CREATE UNIQUE INDEX one_open_alert_per_condition ON alerts (workspace_id, condition) WHERE recovered_at IS NULL;

CREATE INDEX alerts_over ON alerts (recovered_at) WHERE recovered_at IS NOT NULL;

-- Notices for each target, in the order of place. A row stays until it was delivered or a later notice replaced it.
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
    -- The target answers and refuses this notice; it no longer delays the others.
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
