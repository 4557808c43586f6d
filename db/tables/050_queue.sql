-- The queue. `deliveries` is the source of truth. The narrow tables beside it make the cost of a claim depend only on
-- what it claims. Only the triggers of deliveries and channels write them.
-- Its foreign keys to messages and channels are triggers too (deliveries_after_insert, refers_to_deliveries): for all
-- rows of a statement at once. And everywhere in the schema only the primary key begins with workspace_id: a plan that
-- was made while a table was nearly empty would otherwise take any index for as good, and keep it when there are
-- millions.

-- How often and how soon a delivery is retried, for all replicas. Written by adopt_policy, read through current_policy.
-- A null, or no row at all, means the default.
CREATE TABLE delivery_policy (
    is_the_only_one boolean PRIMARY KEY DEFAULT true,
    max_attempts int,
    backoff_base interval,
    backoff_cap interval,
    group_cooldown interval,
    probe_base interval,
    probe_cap interval,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT there_is_one_policy CHECK (is_the_only_one),
    CONSTRAINT max_attempts_is_sane CHECK (max_attempts BETWEEN 1 AND 100),
    CONSTRAINT backoff_base_is_sane CHECK (backoff_base BETWEEN interval '10 milliseconds' AND interval '1 day'),
    CONSTRAINT backoff_cap_is_sane CHECK (backoff_cap BETWEEN interval '10 milliseconds' AND interval '1 day'),
    CONSTRAINT group_cooldown_is_sane CHECK (group_cooldown BETWEEN interval '10 milliseconds' AND interval '1 day'),
    CONSTRAINT probe_base_is_sane CHECK (probe_base BETWEEN interval '10 milliseconds' AND interval '1 day'),
    CONSTRAINT probe_cap_is_sane CHECK (probe_cap BETWEEN interval '10 milliseconds' AND interval '1 day')
);

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
    -- Somebody asked to cancel it while it was being sent: who and why. A failed call is not repeated then.
    cancel_request jsonb,
    provider_message_id text,
    sent_at timestamptz,
    last_error jsonb,
    -- plan_hash, and series_progress once a part is acknowledged.
    render_meta jsonb NOT NULL DEFAULT '{}',
    plan_hash text,
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

-- Dedup looks up by message. No index has status, so that an update of status stays on its page.
CREATE INDEX deliveries_by_message ON deliveries (message_id, channel_id, workspace_id);

CREATE UNIQUE INDEX one_delivery_per_batch_and_content
    ON deliveries (enqueue_batch_id, channel_id, hash_version, content_hash, workspace_id)
    WHERE enqueue_batch_id IS NOT NULL;

-- One row per live delivery (queued, retry, claimed, sending).
-- asleep    not due yet; sort_at is when it will be
-- awake     due; sort_at is created_at, so the oldest goes first whatever its retries, but never before the
--           low_water of its channel
-- due_at    when it may be claimed, awake or asleep; a claimed row keeps its value
-- by_hand   its status is claimed, which only manual flows use
-- slow      a publication: see assign_slots
CREATE TABLE delivery_queue (
    workspace_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    asleep boolean NOT NULL,
    sort_at timestamptz NOT NULL,
    claim_token uuid,
    lease_until timestamptz,
    status delivery_status NOT NULL DEFAULT 'queued',
    due_at timestamptz NOT NULL DEFAULT '-infinity',
    by_hand boolean NOT NULL DEFAULT false,
    slow boolean NOT NULL DEFAULT false,
    PRIMARY KEY (workspace_id, delivery_id)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

-- Claims write claim_token, lease_until and status alone; none is in an index, so a claim stays on its page.
-- Every column that a look-up asks for is in its index, so that without statistics, too, the planner has nothing to
-- choose.
CREATE INDEX delivery_queue_by_channel ON delivery_queue (channel_id, asleep, sort_at, delivery_id, workspace_id);

CREATE INDEX delivery_queue_by_hand ON delivery_queue (workspace_id) WHERE by_hand;

-- When a claim should next look at each channel. So a claim never visits a channel that is paused, disabled, closed,
-- out of slots or empty.
CREATE TABLE channel_due (
    workspace_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    platform text NOT NULL,
    rate_group text NOT NULL,
    max_parallel int NOT NULL DEFAULT 1,
    next_due_at timestamptz NOT NULL DEFAULT 'infinity',
    -- Only max_parallel keeps it closed: the commit that frees a place makes it due.
    waits_for_place boolean NOT NULL DEFAULT false,
    -- No waiting row sorts before it, so a claim does not read index entries of old sends. Raised by claims, see
    -- reschedule_channels; rows that are queued later sort behind it.
    low_water timestamptz NOT NULL DEFAULT '-infinity',
    swept_at timestamptz NOT NULL DEFAULT '-infinity',
    -- How many deliveries a claim expects to get from it: see ready_channels and reschedule_channels.
    expected_batch int NOT NULL DEFAULT 1,
    PRIMARY KEY (workspace_id, channel_id),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels ON DELETE CASCADE
) WITH (fillfactor = 50);

-- Without the channels that wait for nothing but a post or a place, so that the poll does not meet idle workspaces.
CREATE INDEX channel_due_by_group ON channel_due (rate_group, platform, workspace_id, next_due_at)
WHERE next_due_at < 'infinity';

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

-- When a claim last ran in each workspace: the one that waited longest goes first.
CREATE TABLE workspace_due (
    workspace_id uuid PRIMARY KEY REFERENCES workspaces,
    last_claimed_at timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

-- Claims that were refused because another claim held the lock of the workspace: the first and the last since a claim
-- succeeded. Written at most once a second, only by a refused claim.
CREATE TABLE claim_refusals (
    workspace_id uuid PRIMARY KEY REFERENCES workspaces,
    since timestamptz NOT NULL,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- One row per delivery that is dead or failed_permanent, so that they are found without reading all deliveries. Written
-- by the triggers of deliveries; skip() notes that an operator has looked at it.
CREATE TABLE dead_letters (
    workspace_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    status delivery_status NOT NULL,
    given_up_at timestamptz NOT NULL,
    skipped_at timestamptz,
    PRIMARY KEY (workspace_id, delivery_id),
    CONSTRAINT dead_letters_are_dead_or_failed CHECK (status IN ('dead', 'failed_permanent')),
    CONSTRAINT only_the_dead_are_skipped CHECK (skipped_at IS NULL OR status = 'dead')
);

CREATE INDEX dead_letters_by_time ON dead_letters (status, workspace_id, given_up_at);
