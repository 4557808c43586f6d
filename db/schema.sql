-- The whole schema, as it is after all migrations: read this, change it together with a new migration.
-- A test proves that the migrations give exactly this. Load it into an empty database with psql -f db/schema.sql.

-- Words that the whole schema shares.

CREATE TYPE workspace_status AS ENUM ('active', 'paused', 'disabled');

CREATE TYPE delivery_status AS ENUM (
    'queued', 'claimed', 'sending', 'sent', 'retry', 'deduped', 'failed_permanent', 'dead'
);

-- A closed list: a new action is a migration, and a line in autopost_contracts.events.
CREATE TYPE event_action AS ENUM (
    'enqueue', 'validation_failed', 'send_attempt', 'sent', 'retry_scheduled', 'dedup_suppressed',
    'failed_permanent', 'dead_letter', 'channel_paused', 'channel_disabled', 'channel_enabled',
    'message_tag_mismatch', 'sending_lease_expired', 'claimed_lease_expired', 'manual_requeue', 'auth_rotated',
    'ingress_rate_limited', 'ingress_payload_rejected', 'ingress_dedup_dropped', 'ingress_config_error',
    'stale_commit', 'checkpoint', 'catch_up_dropped', 'channel_migrated', 'payload_accessed', 'manual_skip',
    'media_failed', 'held',
    'bot_replied', 'bot_reply_failed',
    'publication_scheduled', 'publication_published', 'publication_failed', 'publication_paused'
);

CREATE TYPE event_result AS ENUM ('ok', 'error');

-- A post of a batch, by its place in it; see posts_in.
CREATE TYPE post AS (
    place int,
    content_hash text,
    hash_version int,
    normalization_version int,
    payload jsonb,
    tags text[],
    channels text[],
    channel_tags text[],
    source jsonb,
    source_ref text,
    scheduled_for timestamptz,
    max_attempts int,
    run_id uuid,
    trace_id text,
    traceparent text,
    batch_id uuid,
    renderings jsonb,
    request jsonb
);

-- Where a post goes: its place in a batch, the channels that show it, and the rendering that they show. A post has one
-- for each profile and TTL.
CREATE TYPE route AS (
    place int,
    dedup_ttl_hours int,
    channel_ids uuid[],
    plan_hash text,
    rendered_text text,
    plan jsonb,
    calls smallint,
    template_version text,
    problems jsonb,
    number int,
    -- The number of the first route of the post that shows the same plan.
    shows int
);

-- What became of a post of a batch, by its place in it; see enqueue_posts.
CREATE TYPE post_answer AS (
    place int,
    message_id uuid,
    is_new boolean,
    routed int,
    enqueued int,
    deduped int,
    validation_failed int
);

-- Time-ordered ids where the server can make them, random ones before PostgreSQL 18.
DO $$
BEGIN
    IF current_setting('server_version_num')::int >= 180000 THEN
        EXECUTE 'CREATE FUNCTION new_id() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS ''SELECT uuidv7()''';
    ELSE
        EXECUTE 'CREATE FUNCTION new_id() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS ''SELECT gen_random_uuid()''';
    END IF;
END $$;

-- Who the tenants are, and through which doors they come in.

CREATE TABLE workspaces (
    workspace_id uuid PRIMARY KEY DEFAULT new_id(),
    name text NOT NULL,
    status workspace_status NOT NULL DEFAULT 'active',
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Null: since before anybody noted it. Kept by the trigger of workspace_turned.
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
    CONSTRAINT kind_is_known CHECK (kind IN ('webhook_push', 'bot_webhook', 'pull_source', 'bot_api')),
    CONSTRAINT secret_hash_is_null_only_for_a_pull_source CHECK ((secret_hash IS NULL) = (kind = 'pull_source')),
    CONSTRAINT source_id_is_for_a_pull_source CHECK ((source_id IS NOT NULL) = (kind = 'pull_source')),
    CONSTRAINT secret_hash_is_sha256_hex CHECK (secret_hash ~ '^[0-9a-f]{64}$'),
    CONSTRAINT ingress_rps_is_not_negative CHECK (ingress_rps >= 0),
    CONSTRAINT max_payload_bytes_is_positive CHECK (max_payload_bytes > 0),
    CONSTRAINT hash_drop_window_is_not_negative CHECK (hash_drop_window_sec >= 0)
);

-- The lookup of every request. It spans tenants on purpose: the secret says which tenant it is.
CREATE UNIQUE INDEX one_enabled_endpoint_per_secret ON workspace_endpoints (kind, secret_hash)
    WHERE enabled AND secret_hash IS NOT NULL;
CREATE UNIQUE INDEX one_enabled_endpoint_per_source ON workspace_endpoints (workspace_id, source_id)
    WHERE enabled AND source_id IS NOT NULL;
-- A signed request names its endpoint and nothing else; the signature says whether to believe it.
CREATE INDEX workspace_endpoints_by_id ON workspace_endpoints (endpoint_id);

-- Where posts go, under which limits, and with whose credentials.

CREATE TABLE templates (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    template_id text NOT NULL,
    version int NOT NULL DEFAULT 1,
    body text NOT NULL,
    defaults jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, template_id, version),
    CONSTRAINT version_is_positive CHECK (version > 0)
);

CREATE TABLE channels (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    channel_id uuid NOT NULL DEFAULT new_id(),
    platform text NOT NULL,
    target_id text NOT NULL,
    auth_ref text NOT NULL,
    rate_group text NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    title text,
    send_mode text NOT NULL DEFAULT 'mixed',
    rate_rps numeric DEFAULT 1,
    max_parallel int NOT NULL DEFAULT 1,
    next_allowed_at timestamptz,
    paused_until timestamptz,
    timezone text,
    window_mode text NOT NULL DEFAULT 'immediate',
    posting_window jsonb,
    dedup_ttl_hours int DEFAULT 168,
    error_streak int NOT NULL DEFAULT 0,
    settings jsonb NOT NULL DEFAULT '{}',
    tags text[] NOT NULL DEFAULT '{}',
    route_filter jsonb,
    template_ref text,
    on_ambiguous text NOT NULL DEFAULT 'resend',
    catch_up jsonb NOT NULL DEFAULT '{"policy": "all"}',
    -- What makes two channels render alike; written by the trigger of channel_profile.
    profile_hash text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, channel_id),
    CONSTRAINT one_channel_per_destination UNIQUE (target_id, platform, workspace_id),
    CONSTRAINT platform_is_a_name CHECK (platform ~ '^[a-z][a-z0-9_]*$'),
    CONSTRAINT target_id_is_not_empty CHECK (target_id <> ''),
    CONSTRAINT send_mode_is_known CHECK (send_mode IN ('text', 'media', 'mixed')),
    CONSTRAINT rate_rps_is_not_negative CHECK (rate_rps >= 0),
    CONSTRAINT max_parallel_is_positive CHECK (max_parallel > 0),
    CONSTRAINT window_mode_is_known CHECK (window_mode IN ('immediate', 'windowed')),
    CONSTRAINT windowed_has_windows CHECK (window_mode <> 'windowed' OR posting_window IS NOT NULL),
    CONSTRAINT dedup_ttl_is_not_negative CHECK (dedup_ttl_hours >= 0),
    CONSTRAINT error_streak_is_not_negative CHECK (error_streak >= 0),
    CONSTRAINT settings_is_an_object CHECK (jsonb_typeof(settings) = 'object'),
    CONSTRAINT route_filter_is_an_object CHECK (jsonb_typeof(route_filter) = 'object'),
    CONSTRAINT tags_are_lowercase CHECK (lower(tags::text) = tags::text),
    CONSTRAINT on_ambiguous_is_known CHECK (on_ambiguous IN ('resend', 'verify', 'hold')),
    -- {"policy": "all"} | {"policy": "newest", "keep": 10} | {"policy": "drop_older", "older_than": "2 hours"}
    CONSTRAINT catch_up_is_known CHECK (CASE catch_up ->> 'policy'
        WHEN 'all' THEN true
        WHEN 'newest' THEN coalesce(jsonb_typeof(catch_up -> 'keep') = 'number'
                                    AND catch_up ->> 'keep' ~ '^[0-9]{1,6}$', false)
        WHEN 'drop_older' THEN coalesce(catch_up ->> 'older_than'
                                        ~ '^[1-9][0-9]{0,5} (second|minute|hour|day|week)s?$', false)
        ELSE false
    END)
) WITH (fillfactor = 70);

CREATE INDEX channels_by_tag ON channels USING gin (tags);
-- Nearly always empty: a commit asks it whether any channel's streak is to be reset.
CREATE INDEX channels_in_trouble ON channels (workspace_id) WHERE error_streak > 0;
-- Nearly always empty: a claim asks it whether a pause has run out that a catch-up policy follows.
CREATE INDEX channels_to_catch_up ON channels (workspace_id)
WHERE paused_until IS NOT NULL AND catch_up ->> 'policy' <> 'all';

CREATE TABLE platform_limits (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    platform text NOT NULL,
    rate_group text NOT NULL,
    rate_rps numeric,
    next_allowed_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, platform, rate_group),
    CONSTRAINT rate_rps_is_not_negative CHECK (rate_rps >= 0)
) WITH (fillfactor = 50);

CREATE TABLE channel_auth (
    workspace_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    auth_ref text NOT NULL,
    rotated_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, channel_id),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels ON DELETE CASCADE
);

-- Where a credential's secret lies: 'env:NAME', 'file:PATH', or 'sealed' with its AES-GCM ciphertext.
CREATE TABLE credential_bindings (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    auth_ref text NOT NULL,
    platform text NOT NULL,
    secret_ref text NOT NULL,
    sealed bytea,
    bot_id text,
    rotated_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, auth_ref, platform),
    CONSTRAINT secret_ref_is_known CHECK (secret_ref ~ '^(env:[A-Z_][A-Z0-9_]*|file:.+|sealed)$'),
    CONSTRAINT sealed_only_when_referred_to CHECK ((sealed IS NOT NULL) = (secret_ref = 'sealed'))
);

-- A bot belongs to one tenant.
CREATE UNIQUE INDEX one_workspace_per_bot ON credential_bindings (platform, bot_id) WHERE bot_id IS NOT NULL;

-- What is posted: stored once, whatever the number of channels.

CREATE TABLE messages (
    workspace_id uuid NOT NULL,
    message_id uuid NOT NULL DEFAULT new_id(),
    hash_version int NOT NULL DEFAULT 1,
    content_hash text NOT NULL,
    normalization_version int NOT NULL DEFAULT 1,
    payload jsonb NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    source jsonb,
    source_ref text,
    first_seen_trace_id text,
    first_ingest_run_id uuid,
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    last_ingest_run_id uuid,
    seen_count bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, message_id),
    CONSTRAINT one_message_per_content UNIQUE (content_hash, hash_version, workspace_id),
    CONSTRAINT seen_count_is_positive CHECK (seen_count > 0)
) WITH (fillfactor = 80);

CREATE INDEX messages_by_creation ON messages (created_at);
CREATE INDEX messages_by_tag ON messages USING gin (tags) WHERE tags <> '{}';
CREATE INDEX messages_by_source_ref ON messages (source_ref) WHERE source_ref IS NOT NULL;
-- Who still shows a picture. Posts without media are not in it.
CREATE INDEX messages_by_media ON messages USING gin ((payload -> 'media') jsonb_path_ops)
    WHERE payload -> 'media' <> '[]';

-- The text and plan that a render profile made of a message. Never changed: a repost or a new template
-- version adds a row, and what a live delivery will send stays what it was. It goes with its message: the foreign key are
-- triggers, once per statement (has_message, message_gone).
CREATE TABLE renderings (
    workspace_id uuid NOT NULL,
    message_id uuid NOT NULL,
    plan_hash text NOT NULL,
    rendering_id uuid NOT NULL DEFAULT new_id(),
    rendered_text text NOT NULL,
    plan jsonb NOT NULL,
    calls smallint NOT NULL DEFAULT 1,
    template_version text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, rendering_id),
    CONSTRAINT one_rendering_per_plan UNIQUE (message_id, plan_hash, workspace_id),
    CONSTRAINT a_plan_has_calls CHECK (calls > 0)
);

CREATE TABLE media_origin (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    blob_ref text NOT NULL,
    origin_url text NOT NULL,
    sha256 text,
    content_type text,
    size_bytes bigint,
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    ref_count bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    width int,
    height int,
    name text,
    -- Being collected, by whoever knows this doom: for readers it is gone already. Whoever brings the same bytes waits
    -- until the one who collects is done, or can no longer be at it.
    doomed_until timestamptz,
    doom uuid,
    PRIMARY KEY (workspace_id, blob_ref),
    CONSTRAINT a_doom_has_an_end CHECK ((doomed_until IS NULL) = (doom IS NULL))
);

CREATE INDEX media_origin_by_age ON media_origin (last_seen_at);
CREATE INDEX media_origin_doomed ON media_origin (doomed_until) WHERE doomed_until IS NOT NULL;

-- What a provider already holds of a blob. bot_id is the provider's bot, not its token: a rotated token
-- keeps the cache, another bot has its own.
CREATE TABLE media_blobs (
    workspace_id uuid NOT NULL,
    blob_ref text NOT NULL,
    provider text NOT NULL,
    bot_id text NOT NULL DEFAULT '',
    file_id text,
    url text,
    expires_at timestamptz,
    meta jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- The claim that is bringing it there; over with that claim, however that ends.
    upload_delivery_id uuid,
    upload_token uuid,
    PRIMARY KEY (workspace_id, blob_ref, provider, bot_id),
    FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT an_upload_is_a_claim CHECK ((upload_delivery_id IS NULL) = (upload_token IS NULL))
);

-- The queue. `deliveries` is the record and always true; the narrow tables beside it exist so that a claim
-- costs what it claims. They are written only by the triggers of deliveries and channels.
-- Its foreign keys to messages and channels are triggers too (delivery_born, refers_to_deliveries): for all rows of a
-- statement at once. And everywhere in the schema only the primary key begins with workspace_id: a plan that was made
-- while a table was nearly empty would otherwise take any index for as good, and keep it when there are millions.

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
    -- How many deliveries a look is expected to give: see ready_channels and settle_channels.
    yields int NOT NULL DEFAULT 1,
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

-- When each workspace was last claimed in: its turn among those that are due.
CREATE TABLE workspace_due (
    workspace_id uuid PRIMARY KEY REFERENCES workspaces,
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
CREATE INDEX events_of_message ON events (message_id, seq) WHERE delivery_id IS NULL AND message_id IS NOT NULL;
CREATE INDEX events_with_error ON events (workspace_id, ts) WHERE result = 'error';
CREATE INDEX events_for_relay ON events (xid, seq);
-- Events lie on disk nearly in the order of seq, so this costs next to nothing to keep.
CREATE INDEX events_by_seq ON events USING brin (seq) WITH (pages_per_range = 32, autosummarize = on);

-- How far the audit relay has come. system_identifier names the cluster: transaction ids start again in a new one.
-- A window is lo <= xid < hi, and is read in the order of seq. What a former cluster wrote has seq <= floor_seq and is
-- swept in the order of seq before the first window.
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

-- What the audit stream has beyond stream_seq was written after marked_at: once an hour, for as long as a message stays.
CREATE TABLE relay_marks (
    marked_at timestamptz PRIMARY KEY,
    stream_seq bigint NOT NULL
);

-- Which replica of the monitor does which round, and until when. Who holds one and neither ends nor renews it loses it.
CREATE TABLE monitor_rounds (
    round text PRIMARY KEY,
    holder uuid,
    lease_until timestamptz,
    begun_at timestamptz NOT NULL,
    done_at timestamptz,
    CONSTRAINT a_lease_has_a_holder CHECK ((holder IS NULL) = (lease_until IS NULL))
) WITH (fillfactor = 50);

-- The whole installation can be in trouble too: the zero id stands for it, and is no workspace.
CREATE TABLE alerts (
    workspace_id uuid NOT NULL,
    alert_id uuid NOT NULL DEFAULT new_id(),
    condition text NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now(),
    reminded_at timestamptz,
    recovered_at timestamptz,
    -- When the first target had it.
    delivered_at timestamptz,
    -- How many things are in this condition, as of seen_at, when the condition was last found.
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

-- What is to be said to each target, in the order of place; kept until it was delivered or a later notice replaced it.
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
    -- The target answers and does not want this one; it no longer holds up the others.
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

-- Who may look at the status page: a workspace's token sees that workspace, one without a workspace is the operator's and
-- sees all. Looked up by its hash across tenants on purpose: the token says which tenant it is.
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

-- How far a guard's walk that takes more than one call has come, and whether it has reached its end.
CREATE TABLE guard_walks (
    walk text PRIMARY KEY,
    after jsonb NOT NULL DEFAULT '{}',
    begun_at timestamptz NOT NULL DEFAULT now(),
    done_at timestamptz
);

-- What has been forgotten: rows whose last change was before this may be gone, and nobody wonders.
CREATE TABLE forgotten (
    what text PRIMARY KEY,
    until timestamptz NOT NULL
);

-- What events refer to and is not there, one row per thing that is missing; see reconcile_events.
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

-- How posts come in: runs, the guard's ledger, posts whose media is still to be fetched, and feeds. The foreign keys of
-- runs, receipts and messages are triggers (has_workspace, has_endpoint, refers_to_posts): once per statement.

CREATE TABLE ingest_runs (
    workspace_id uuid NOT NULL,
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
CREATE INDEX ingest_runs_by_trace ON ingest_runs (trace_id) WHERE trace_id IS NOT NULL;

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

CREATE INDEX ingress_gates_untold ON ingress_gates (reported_at) WHERE refused <> '{}';

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
    -- What the post came from, as its message will say it; the request alone does not tell.
    source jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (workspace_id, post_id),
    FOREIGN KEY (workspace_id, endpoint_id) REFERENCES workspace_endpoints,
    CONSTRAINT status_is_known CHECK (status IN ('staged', 'fetching', 'enqueued', 'failed')),
    CONSTRAINT only_what_is_fetched_has_a_lease CHECK ((status = 'fetching') = (lease_until IS NOT NULL))
);

-- Work is chosen workspace by workspace, so that one with a long line costs the others nothing.
CREATE INDEX staged_posts_waiting ON staged_posts (workspace_id, next_attempt_at)
    WHERE status IN ('staged', 'fetching');
CREATE INDEX staged_posts_fetching ON staged_posts (workspace_id) WHERE status = 'fetching';
CREATE INDEX staged_posts_by_run ON staged_posts (run_id);
CREATE INDEX staged_posts_finished ON staged_posts (finished_at) WHERE finished_at IS NOT NULL;

-- A fetch belongs to the lease of the post that makes it and ends with that lease, however that ends.
CREATE TABLE media_fetches (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    url_hash text NOT NULL,
    post_id uuid,
    lease_token uuid,
    blob_ref text,
    -- Objects that were about to be written and that media_origin does not know yet: they may exist.
    puts text[] NOT NULL DEFAULT '{}',
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    PRIMARY KEY (workspace_id, url_hash),
    CONSTRAINT a_fetch_belongs_to_a_lease CHECK ((post_id IS NULL) = (lease_token IS NULL)),
    CONSTRAINT what_is_finished_is_known CHECK ((finished_at IS NULL) = (blob_ref IS NULL))
);

CREATE INDEX media_fetches_by_age ON media_fetches (workspace_id, started_at);
CREATE INDEX media_fetches_putting ON media_fetches (started_at) WHERE puts <> '{}';

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
    -- How often it ended without anything to post.
    failures int NOT NULL DEFAULT 0,
    -- As if there were no receipt, but for that count.
    released_at timestamptz,
    PRIMARY KEY (workspace_id, source_id, source_ref),
    FOREIGN KEY (workspace_id, source_id) REFERENCES pull_sources ON DELETE CASCADE
);

CREATE INDEX pull_receipts_released ON pull_receipts (workspace_id, source_id, released_at)
    WHERE released_at IS NOT NULL;

ALTER TABLE workspace_endpoints ADD CONSTRAINT pull_source_exists
    FOREIGN KEY (workspace_id, source_id) REFERENCES pull_sources;

-- The shop bot in MAX, and the long-running actions it shows in a chat.

CREATE TABLE bot_inbox (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    provider text NOT NULL,
    chat_id text NOT NULL,
    provider_message_id text NOT NULL,
    ts timestamptz NOT NULL DEFAULT now(),
    endpoint_id uuid,
    kind text NOT NULL DEFAULT 'message_created',
    update jsonb NOT NULL DEFAULT '{}',
    trace_id text,
    traceparent text,
    processed_at timestamptz,
    PRIMARY KEY (workspace_id, provider, chat_id, provider_message_id)
);

CREATE INDEX bot_inbox_unanswered ON bot_inbox (workspace_id, chat_id, ts) WHERE processed_at IS NULL;
CREATE INDEX bot_inbox_done ON bot_inbox (processed_at) WHERE processed_at IS NOT NULL;

CREATE TABLE bot_outbox (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    chat_id text NOT NULL,
    inbound_provider_message_id text NOT NULL,
    response_hash text NOT NULL,
    response jsonb NOT NULL DEFAULT '{}',
    attempt int NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    lease_token uuid,
    lease_until timestamptz,
    sent_at timestamptz,
    provider_message_id text,
    last_error jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, chat_id, inbound_provider_message_id)
);

CREATE INDEX bot_outbox_unsent ON bot_outbox (next_attempt_at) WHERE sent_at IS NULL;
CREATE INDEX bot_outbox_sent ON bot_outbox (sent_at) WHERE sent_at IS NOT NULL;

CREATE TABLE bot_rules (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    rule_id text NOT NULL,
    version int NOT NULL DEFAULT 1,
    enabled boolean NOT NULL DEFAULT true,
    intent text NOT NULL,
    pattern jsonb NOT NULL,
    priority int NOT NULL DEFAULT 0,
    max_turns int NOT NULL DEFAULT 5,
    state text,
    capture text,
    response_template text NOT NULL,
    next_state text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, rule_id, version),
    CONSTRAINT pattern_has_keywords CHECK (jsonb_typeof(pattern -> 'keywords') = 'array'),
    CONSTRAINT pattern_mode_is_known CHECK (pattern ->> 'mode' IN ('contains', 'any')),
    CONSTRAINT max_turns_is_positive CHECK (max_turns > 0)
);

CREATE UNIQUE INDEX one_enabled_version_per_rule ON bot_rules (workspace_id, rule_id) WHERE enabled;

CREATE TABLE bot_state (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    chat_id text NOT NULL,
    state text NOT NULL DEFAULT 'default',
    context jsonb NOT NULL DEFAULT '{"turns": 0}',
    expires_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, chat_id)
);

CREATE INDEX bot_state_by_expiry ON bot_state (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE bot_logs (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    id uuid NOT NULL DEFAULT new_id(),
    ts timestamptz NOT NULL DEFAULT now(),
    chat_id text NOT NULL,
    message_text text NOT NULL,
    matched_rule_id text,
    rule_version int,
    state_before text NOT NULL,
    state_after text NOT NULL,
    response_preview text,
    meta jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (workspace_id, id),
    CONSTRAINT a_matched_rule_has_its_version CHECK ((matched_rule_id IS NULL) = (rule_version IS NULL))
);

CREATE INDEX bot_logs_by_time ON bot_logs (workspace_id, ts);

CREATE TABLE bot_actions (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    chat_id text NOT NULL,
    action_id text NOT NULL,
    action_type text NOT NULL,
    status text NOT NULL DEFAULT 'processing',
    display_text text,
    payload jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, chat_id, action_id),
    CONSTRAINT status_is_known CHECK (status IN ('processing', 'done', 'error')),
    CONSTRAINT display_text_is_short CHECK (length(display_text) <= 300)
);

CREATE INDEX bot_actions_processing ON bot_actions (workspace_id, chat_id, updated_at DESC) WHERE status = 'processing';
CREATE INDEX bot_actions_over ON bot_actions (updated_at) WHERE status <> 'processing';

-- Publications: one approved creative for one channel at one time, and the outbox that asks for its sending.

CREATE TABLE publications (
    workspace_id uuid NOT NULL,
    publication_id uuid NOT NULL DEFAULT new_id(),
    channel_id uuid NOT NULL,
    creative_draft jsonb NOT NULL,
    status text NOT NULL DEFAULT 'draft',
    scheduled_at timestamptz,
    version int NOT NULL DEFAULT 1,
    owner text,
    attempt int NOT NULL DEFAULT 0,
    delivery_id uuid,
    published_message_id text,
    published_at timestamptz,
    last_error jsonb,
    trace_id text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, publication_id),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels,
    CONSTRAINT status_is_known CHECK (status IN
        ('draft', 'approved', 'scheduled', 'publishing', 'published', 'paused', 'failed')),
    CONSTRAINT scheduled_has_a_time CHECK (status NOT IN ('scheduled', 'publishing') OR scheduled_at IS NOT NULL),
    CONSTRAINT published_has_its_message CHECK (status <> 'published' OR published_message_id IS NOT NULL)
);

CREATE INDEX publications_due ON publications (scheduled_at) WHERE status = 'scheduled';

-- Written in the transaction that decides to publish; relayed to COMMANDS afterwards, any number of times.
CREATE TABLE command_outbox (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    command_id uuid NOT NULL DEFAULT new_id(),
    msg_id text NOT NULL,
    subject text NOT NULL,
    payload jsonb NOT NULL,
    traceparent text,
    created_at timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz,
    PRIMARY KEY (workspace_id, command_id),
    CONSTRAINT one_command_per_msg_id UNIQUE (msg_id, workspace_id)
);

CREATE INDEX command_outbox_unpublished ON command_outbox (created_at) WHERE published_at IS NULL;
CREATE INDEX command_outbox_published ON command_outbox (published_at) WHERE published_at IS NOT NULL;

-- Functions and their triggers, views, and who may use them.
SET check_function_bodies = off;
\ir functions/abandon_notices.sql
\ir functions/active_workspaces.sql
\ir functions/add_counters.sql
\ir functions/admit_posts.sql
\ir functions/adopt_stream.sql
\ir functions/advance_relay.sql
\ir functions/alert_conditions.sql
\ir functions/alert_notice.sql
\ir functions/audit_cursor.sql
\ir functions/bind_credential.sql
\ir functions/bot_backlog.sql
\ir functions/bury_media.sql
\ir functions/catch_up_begins.sql
\ir functions/catch_up_excess.sql
\ir functions/channel_drift.sql
\ir functions/channel_is_sound.sql
\ir functions/channel_opens_at.sql
\ir functions/channel_profile.sql
\ir functions/channel_readiness.sql
\ir functions/channels_of.sql
\ir functions/checkpoint_deliveries.sql
\ir functions/choose_deliveries.sql
\ir functions/claim_deliveries.sql
\ir functions/claim_pull_sources.sql
\ir functions/claimed_in_common.sql
\ir functions/close_window.sql
\ir functions/commit_deliveries.sql
\ir functions/commit_sent.sql
\ir functions/complete_posts.sql
\ir functions/condition_bot_errors.sql
\ir functions/condition_bot_outbox.sql
\ir functions/condition_cooled_groups.sql
\ir functions/condition_dead.sql
\ir functions/condition_event_partitions.sql
\ir functions/condition_failed_permanent.sql
\ir functions/condition_oldest_due.sql
\ir functions/condition_orphan_events.sql
\ir functions/condition_paused_channels.sql
\ir functions/condition_pull_sources.sql
\ir functions/condition_relay_lag.sql
\ir functions/condition_staged_posts.sql
\ir functions/count_alerts.sql
\ir functions/count_flight.sql
\ir functions/count_pull.sql
\ir functions/delivery_born.sql
\ir functions/delivery_gone.sql
\ir functions/delivery_moved.sql
\ir functions/disable_channels.sql
\ir functions/doom_media.sql
\ir functions/doom_strays.sql
\ir functions/drop_event_partition.sql
\ir functions/drop_excess.sql
\ir functions/due_of.sql
\ir functions/due_workspaces.sql
\ir functions/enable_channels.sql
\ir functions/end_pauses.sql
\ir functions/end_round.sql
\ir functions/enqueue_distinct_posts.sql
\ir functions/enqueue_messages_and_deliveries.sql
\ir functions/enqueue_messages_and_deliveries_batch.sql
\ir functions/enqueue_posts.sql
\ir functions/enqueue_seen_posts.sql
\ir functions/ensure_event_partitions.sql
\ir functions/event_context.sql
\ir functions/event_meta.sql
\ir functions/event_partitions.sql
\ir functions/events_are_append_only.sql
\ir functions/events_are_strict.sql
\ir functions/expired_event_partitions.sql
\ir functions/fail_permanent.sql
\ir functions/fail_push.sql
\ir functions/fail_staged_post.sql
\ir functions/finish_media_fetch.sql
\ir functions/finish_pull.sql
\ir functions/finish_staged_post.sql
\ir functions/finish_staged_run.sql
\ir functions/flush_refusals.sql
\ir functions/fold_deliveries.sql
\ir functions/forget_uploads.sql
\ir functions/has_endpoint.sql
\ir functions/has_message.sql
\ir functions/has_workspace.sql
\ir functions/hold_claims.sql
\ir functions/hold_excess.sql
\ir functions/hold_staged_post.sql
\ir functions/holds_relay.sql
\ir functions/id_in.sql
\ir functions/id_start.sql
\ir functions/ingest_pull_chunk.sql
\ir functions/is_legal_transition.sql
\ir functions/is_near.sql
\ir functions/is_token_code.sql
\ir functions/issue_status_token.sql
\ir functions/judge_alerts.sql
\ir functions/judge_messages.sql
\ir functions/judge_requeue.sql
\ir functions/keep_uploads.sql
\ir functions/lease_staged_posts.sql
\ir functions/list_channels.sql
\ir functions/list_credentials.sql
\ir functions/list_status_tokens.sql
\ir functions/list_workspaces.sql
\ir functions/lock_gates.sql
\ir functions/make_channels_due.sql
\ir functions/mark_sent.sql
\ir functions/mark_stream.sql
\ir functions/match_given_up.sql
\ir functions/may_follow.sql
\ir functions/media_is_live.sql
\ir functions/message_gone.sql
\ir functions/missing_profiles.sql
\ir functions/name_causes.sql
\ir functions/next_audit_events.sql
\ir functions/next_due_at.sql
\ir functions/next_notice.sql
\ir functions/note_media_put.sql
\ir functions/note_payload_access.sql
\ir functions/open_channels.sql
\ir functions/open_relay.sql
\ir functions/open_sweep.sql
\ir functions/open_window.sql
\ir functions/orphan_events.sql
\ir functions/partitions_ahead.sql
\ir functions/pass_gate.sql
\ir functions/pass_posts.sql
\ir functions/pause_channels.sql
\ir functions/posts_in.sql
\ir functions/preview_post.sql
\ir functions/pull_delay.sql
\ir functions/queue_depth.sql
\ir functions/rate_step.sql
\ir functions/rates_used.sql
\ir functions/read_credentials.sql
\ir functions/read_media_origins.sql
\ir functions/read_outcomes.sql
\ir functions/read_signing_secrets.sql
\ir functions/read_staged_post.sql
\ir functions/ready_channels.sql
\ir functions/recent_errors.sql
\ir functions/reconcile_events.sql
\ir functions/record_progress.sql
\ir functions/recount.sql
\ir functions/recover_claimed_leases.sql
\ir functions/recover_sending_leases.sql
\ir functions/recover_staged_posts.sql
\ir functions/redact.sql
\ir functions/refers_to_channels.sql
\ir functions/refers_to_deliveries.sql
\ir functions/refers_to_posts.sql
\ir functions/refuse_ingress.sql
\ir functions/refuse_move.sql
\ir functions/relay_lag.sql
\ir functions/relay_passed.sql
\ir functions/release_pull_receipt.sql
\ir functions/release_staged_post.sql
\ir functions/release_stale.sql
\ir functions/remember_media_origin.sql
\ir functions/renew_leases.sql
\ir functions/renew_staged_post.sql
\ir functions/requeue.sql
\ir functions/requeue_is_explained.sql
\ir functions/requeue_matching.sql
\ir functions/resolve_ambiguous.sql
\ir functions/resolve_endpoint.sql
\ir functions/resolve_status_token.sql
\ir functions/resume_channels.sql
\ir functions/retain_alerts.sql
\ir functions/retain_bot_actions.sql
\ir functions/retain_bot_inbox.sql
\ir functions/retain_bot_logs.sql
\ir functions/retain_bot_outbox.sql
\ir functions/retain_bot_state.sql
\ir functions/retain_commands.sql
\ir functions/retain_deliveries.sql
\ir functions/retain_ingest_runs.sql
\ir functions/retain_media_blobs.sql
\ir functions/retain_media_fetches.sql
\ir functions/retain_messages.sql
\ir functions/retain_pull_receipts.sql
\ir functions/retain_receipts.sql
\ir functions/retain_staged_posts.sql
\ir functions/retry_delay.sql
\ir functions/revoke_status_token.sql
\ir functions/rotate_auth.sql
\ir functions/route_matches.sql
\ir functions/route_posts.sql
\ir functions/routed_channels.sql
\ir functions/schedule_retry.sql
\ir functions/sees_workspace.sql
\ir functions/sent_meta.sql
\ir functions/settle_channels.sql
\ir functions/settle_notice.sql
\ir functions/signed_by.sql
\ir functions/skip.sql
\ir functions/skip_to_event.sql
\ir functions/slot_gate.sql
\ir functions/snapshot.sql
\ir functions/stage_post.sql
\ir functions/staged_origin.sql
\ir functions/status_after.sql
\ir functions/status_report.sql
\ir functions/stays_where_it_is.sql
\ir functions/store_bot_update.sql
\ir functions/stuck_bot_replies.sql
\ir functions/stuck_staged_posts.sql
\ir functions/take_media_fetch.sql
\ir functions/take_receipts.sql
\ir functions/take_round.sql
\ir functions/take_slot.sql
\ir functions/take_uploads.sql
\ir functions/tell_snapshot.sql
\ir functions/token_storms.sql
\ir functions/touch_media_origins.sql
\ir functions/unseen_pull_items.sql
\ir functions/validation_error.sql
\ir functions/verify_channels.sql
\ir functions/verify_deliveries.sql
\ir functions/verify_events.sql
\ir functions/verify_queue.sql
\ir functions/verify_size.sql
\ir functions/wake_channels.sql
\ir functions/wake_sleepers.sql
\ir functions/why.sql
\ir functions/why_behind.sql
\ir functions/why_channel.sql
\ir functions/why_closed.sql
\ir functions/why_delivery.sql
\ir functions/why_ended.sql
\ir functions/why_find.sql
\ir functions/why_history.sql
\ir functions/why_message_history.sql
\ir functions/why_precedence.sql
\ir functions/why_run.sql
\ir functions/why_show_channel.sql
\ir functions/why_show_delivery.sql
\ir functions/why_show_message.sql
\ir functions/why_show_post.sql
\ir functions/window_by_seq.sql
\ir functions/window_by_xid.sql
\ir functions/window_opens_at.sql
\ir functions/workspace_turned.sql
\ir views/delivery_details.sql
\ir views/quarantine.sql
\ir grants/roles.sql

SELECT ensure_event_partitions();
