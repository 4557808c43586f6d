-- The audit log and its relay. Append-only; an event is written by the transaction that makes the fact true.

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

CREATE INDEX events_of_message ON events (message_id, seq) WHERE delivery_id IS NULL AND message_id IS NOT NULL;

CREATE INDEX events_with_error ON events (workspace_id, ts) WHERE result = 'error';

CREATE INDEX events_for_relay ON events (xid, seq);

-- Events are stored nearly in the order of seq, so this index is cheap.
CREATE INDEX events_by_seq ON events USING brin (seq) WITH (pages_per_range = 32, autosummarize = on);

-- The position of the audit relay. system_identifier names the cluster: transaction ids start again in a new one. A
-- window is lo <= xid < hi and is read in the order of seq. Events of a former cluster have seq <= floor_seq; they are
-- relayed in the order of seq before the first window.
CREATE TABLE relay_state (
    relay text PRIMARY KEY,
    system_identifier bigint NOT NULL,
    floor_seq bigint NOT NULL DEFAULT 0,
    lo xid8 NOT NULL DEFAULT '0',
    hi xid8 NOT NULL DEFAULT '0',
    seq_done bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- No event of the window is beyond it.
    seq_top bigint NOT NULL DEFAULT 0,
    -- A big window is read along seq, a small one by its transactions.
    by_seq boolean NOT NULL DEFAULT false,
    -- No event of a window that is closed is beyond it.
    seq_passed bigint NOT NULL DEFAULT 0,
    -- The window is a sweep of what lies above it, up to floor_seq; null when it is not.
    sweep_from bigint,
    -- Older ones would not stay in the stream: set while everything is published again.
    since timestamptz NOT NULL DEFAULT '-infinity',
    -- The stream that was written to, and how far it had come.
    stream_created timestamptz,
    stream_seq bigint NOT NULL DEFAULT 0
);

-- Messages of the audit stream beyond stream_seq were written after marked_at. One row an hour, kept as long as
-- messages stay in the stream.
CREATE TABLE relay_marks (
    marked_at timestamptz PRIMARY KEY,
    stream_seq bigint NOT NULL
);

-- Rows that events refer to and that are missing, one row for each; see reconcile_events.
CREATE TABLE missing_references (
    workspace_id uuid NOT NULL,
    what text NOT NULL,
    ref uuid NOT NULL,
    events bigint NOT NULL,
    first_event_id uuid NOT NULL,
    first_event_at timestamptz NOT NULL,
    found_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, what, ref),
    CONSTRAINT what_is_known CHECK (what IN ('delivery', 'message', 'channel'))
);
