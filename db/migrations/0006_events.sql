-- The audit log. Append-only; written by the transaction that makes the fact true.

CREATE SEQUENCE events_seq AS bigint;

CREATE TABLE events (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT new_id(),
    delivery_id uuid,
    message_id uuid,
    channel_id uuid,
    ts timestamptz NOT NULL DEFAULT clock_timestamp(),
    action event_action NOT NULL,
    attempt int NOT NULL DEFAULT 0,
    result event_result NOT NULL DEFAULT 'ok',
    error jsonb,
    payload_ref text,
    meta jsonb NOT NULL DEFAULT '{}',
    seq bigint NOT NULL DEFAULT nextval('events_seq'),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (workspace_id, ts, id)
) PARTITION BY RANGE (ts);

CREATE INDEX events_by_delivery ON events (delivery_id, seq) WHERE delivery_id IS NOT NULL;
CREATE INDEX events_without_delivery ON events (channel_id, ts) WHERE delivery_id IS NULL;
CREATE INDEX events_with_error ON events (workspace_id, ts) WHERE result = 'error';
CREATE INDEX events_for_relay ON events (xid, seq);

-- How far the audit relay has come. system_identifier names the cluster: transaction ids start again in a new one.
CREATE TABLE relay_state (
    relay text PRIMARY KEY,
    system_identifier bigint NOT NULL,
    floor_seq bigint NOT NULL DEFAULT 0,
    lo xid8 NOT NULL DEFAULT '0',
    hi xid8 NOT NULL DEFAULT '0',
    seq_done bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE alerts (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    alert_id uuid NOT NULL DEFAULT new_id(),
    condition text NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now(),
    reminded_at timestamptz,
    recovered_at timestamptz,
    delivered_at timestamptz,
    occurrences bigint NOT NULL DEFAULT 1,
    causes jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (workspace_id, alert_id)
);

CREATE UNIQUE INDEX one_open_alert_per_condition ON alerts (workspace_id, condition) WHERE recovered_at IS NULL;
