-- The queue. `deliveries` is the record and always true; the narrow tables beside it exist so that a claim
-- costs what it claims. They are written only by the triggers of deliveries and channels.

CREATE TABLE deliveries (
    workspace_id uuid NOT NULL,
    delivery_id uuid NOT NULL DEFAULT new_id(),
    message_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    rendering_id uuid,
    hash_version int NOT NULL,
    content_hash text NOT NULL,
    not_before timestamptz NOT NULL DEFAULT now(),
    scheduled_for timestamptz,
    status delivery_status NOT NULL DEFAULT 'queued',
    attempt int NOT NULL DEFAULT 0,
    max_attempts int NOT NULL DEFAULT 5,
    policy text NOT NULL DEFAULT 'default',
    next_retry_at timestamptz,
    hold_reason text,
    provider_message_id text,
    sent_at timestamptz,
    last_error jsonb,
    -- This delivery's own: plan_hash, and series_progress once a part is acknowledged.
    render_meta jsonb NOT NULL DEFAULT '{}',
    plan_hash text GENERATED ALWAYS AS (render_meta ->> 'plan_hash') STORED,
    template_version text,
    trace_id text,
    traceparent text,
    enqueue_batch_id uuid,
    claimed_at timestamptz,
    claim_token uuid,
    sending_started_at timestamptz,
    sending_lease_until timestamptz,
    slot_at timestamptz,
    event_count int NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, delivery_id),
    CONSTRAINT attempt_is_not_negative CHECK (attempt >= 0),
    CONSTRAINT max_attempts_is_positive CHECK (max_attempts > 0),
    CONSTRAINT policy_is_known CHECK (policy IN ('default', 'publication')),
    CONSTRAINT hold_is_a_retry CHECK (hold_reason IS NULL OR status IN ('retry', 'dead'))
) WITH (fillfactor = 50);

-- Dedup asks by content, and content is a message. No index names status: an update of it stays on its page.
CREATE INDEX deliveries_by_message ON deliveries (message_id, channel_id);
CREATE UNIQUE INDEX one_delivery_per_batch_and_content
    ON deliveries (enqueue_batch_id, channel_id, hash_version, content_hash, workspace_id)
    WHERE enqueue_batch_id IS NOT NULL;

-- One row per live delivery (queued, retry, claimed, sending).
-- asleep    not due yet; sort_at is when it will be
-- awake     due; sort_at is created_at, so the oldest goes first whatever its retries, but never before the
--           low_water of its channel
CREATE TABLE delivery_queue (
    workspace_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    asleep boolean NOT NULL,
    sort_at timestamptz NOT NULL,
    claim_token uuid,
    lease_until timestamptz,
    PRIMARY KEY (workspace_id, delivery_id)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

-- Claims write claim_token and lease_until alone; neither is in an index, so a claim stays on its page.
CREATE INDEX delivery_queue_by_channel ON delivery_queue (channel_id, asleep, sort_at, delivery_id);

-- When each channel is next worth a look: the set of ready channels, kept so that a claim never visits a
-- channel that is paused, disabled, closed, out of slots or empty.
CREATE TABLE channel_due (
    workspace_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    platform text NOT NULL,
    rate_group text NOT NULL,
    max_parallel int NOT NULL DEFAULT 1,
    next_due_at timestamptz NOT NULL DEFAULT 'infinity',
    -- Held by max_parallel alone: the commit that frees a place makes it due.
    waits_for_place boolean NOT NULL DEFAULT false,
    -- Nothing that waits sorts before it, so a claim need not read over what was sent long ago. Raised by claims, see
    -- settle_channels; whoever queues later sorts in behind it.
    low_water timestamptz NOT NULL DEFAULT '-infinity',
    swept_at timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (workspace_id, channel_id),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels ON DELETE CASCADE
) WITH (fillfactor = 50);

CREATE INDEX channel_due_by_group ON channel_due (rate_group, platform, workspace_id, next_due_at);

-- In flight = started - ended. Two rows, because a claim writes one and a commit the other.
CREATE TABLE channel_counters (
    workspace_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    side text NOT NULL,
    total bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, channel_id, side),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels ON DELETE CASCADE,
    CONSTRAINT side_is_known CHECK (side IN ('started', 'ended'))
) WITH (fillfactor = 50);

-- A hint for the poll: which workspaces to look at, in turns. A probe of channel_due corrects it.
CREATE TABLE workspace_due (
    workspace_id uuid PRIMARY KEY REFERENCES workspaces,
    next_due_at timestamptz NOT NULL DEFAULT 'infinity',
    last_claimed_at timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

-- One row per delivery that was given up (dead, failed_permanent): what a human may have to look at, found without
-- reading what was sent. Written by the triggers of deliveries; skip() adds that somebody has looked.
CREATE TABLE given_up (
    workspace_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    status delivery_status NOT NULL,
    given_up_at timestamptz NOT NULL,
    skipped_at timestamptz,
    PRIMARY KEY (workspace_id, delivery_id),
    CONSTRAINT given_up_is_dead_or_failed CHECK (status IN ('dead', 'failed_permanent')),
    CONSTRAINT only_the_dead_are_skipped CHECK (skipped_at IS NULL OR status = 'dead')
);

CREATE INDEX given_up_by_time ON given_up (status, workspace_id, given_up_at);

-- Who dispatches right now; for operators to read, no decision rests on it.
CREATE TABLE dispatcher_state (
    replica text PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now(),
    stats jsonb NOT NULL DEFAULT '{}'
);
