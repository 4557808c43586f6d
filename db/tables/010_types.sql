-- Types that several tables and functions share. An enum value says what it means or where a row may go from it.

CREATE TYPE workspace_status AS ENUM (
    'active',    -- posts are accepted, pulled and sent
    'paused',    -- pushes get 503, nothing is pulled or claimed; bot updates are stored; nothing is lost
    'disabled'   -- requests get 403, nothing is kept
);

-- The state machine of a delivery; is_legal_transition enforces it. Rows are inserted as queued, deduped or
-- failed_permanent.
CREATE TYPE delivery_status AS ENUM (
    'queued',            -- waits for its first claim -> claimed, sending, deduped, failed_permanent, dead, cancelled
    'claimed',           -- taken by hand -> sending, queued, retry, dead
    'sending',           -- claimed under a lease, calls under way -> sent, retry, failed_permanent, dead, cancelled
    'sent',              -- final: every part is acknowledged
    'retry',             -- waits for next_retry_at, or held until infinity -> as queued
    'deduped',           -- final: the channel had this content; an audit row that never extends the dedup window
    'failed_permanent',  -- no retry would help -> retry, only with a manual_requeue event
    'dead',              -- the attempts are used up -> retry, only with a manual_requeue event
    'cancelled'          -- final: withdrawn before it was sent
);

-- What an event says happened. A closed list: a new action goes here and into autopost_contracts.events.
CREATE TYPE event_action AS ENUM (
    'enqueue',                   -- a delivery was queued; result error: no channel takes the post
    'validation_failed',         -- no plan could be made for this channel
    'send_attempt',              -- claimed: the calls begin now
    'sent',                      -- every part is acknowledged
    'retry_scheduled',           -- a transient failure; meta has the next attempt
    'dedup_suppressed',          -- the channel has the content already, or it is on its way
    'failed_permanent',          -- a permanent failure
    'dead_letter',               -- the attempts are used up
    'channel_paused',            -- after a permanent failure, or by an operator
    'channel_disabled',          -- after a streak of them, or by an operator
    'channel_enabled',           -- a pause or a disable ended
    'message_tag_mismatch',      -- known content came with other tags
    'sending_lease_expired',     -- a worker's lease expired
    'claimed_lease_expired',     -- a claim by hand expired
    'manual_requeue',            -- an operator brought back a dead letter
    'auth_rotated',              -- a credential or a channel's auth_ref was replaced
    'ingress_rate_limited',      -- refused requests, counted in meta
    'ingress_payload_rejected',  -- refused bodies, counted in meta
    'ingress_dedup_dropped',     -- repeated requests, counted in meta
    'ingress_config_error',      -- a source has no endpoint
    'stale_commit',              -- a result came with a claim token that was no longer current
    'checkpoint',                -- the folded state of a delivery whose older events are dropped
    'catch_up_dropped',          -- dropped by the catch-up policy of a reopened channel
    'channel_migrated',          -- the platform moved the chat; target_id follows
    'payload_accessed',          -- a raw payload was read
    'manual_skip',               -- an operator looked at a dead letter and leaves it
    'media_failed',              -- media of a staged post could not be fetched
    'held',                      -- an ambiguous outcome waits for an operator
    'config_changed',            -- a change of configuration, with operator and reason
    'bot_replied',               -- the bot answered a customer
    'bot_reply_failed',          -- a reply could not be sent
    'publication_drafted',       -- a publication was written, or edited: then its approval is gone
    'publication_approved',      -- its plan was approved; also when its time was taken away again
    'publication_scheduled',     -- an approved publication got its time
    'publication_due',           -- it is to be sent now
    'publication_published',     -- its post is in the channel
    'publication_failed',        -- its post cannot be sent
    'publication_cancelled',     -- it was called off
    'publication_paused',        -- it waits for a person: its time was missed, or nobody knows whether it was sent
    'pull_failed',               -- a pull of a source failed
    'group_opened',              -- the platform does not answer a rate group: nothing of it is claimed
    'group_closed',              -- the platform answers it again
    'bot_action_expired',        -- an action of a bot was not ended in time
    'bot_escalated',             -- the bot passed a conversation on to people
    'bot_rules_changed',         -- rules of the bot were imported, enabled or disabled
    'bot_update_ignored',        -- somebody wrote in vain: the first time in a minute of a chat, with the reason
    'cancelled',                 -- a delivery, or a post that waits for media, was withdrawn before it was sent
    'rescheduled'                -- a delivery that waits got another time
);

-- May a rate group send? See settle_circuits. "closed" is the word of circuit breakers for "as usual".
CREATE TYPE circuit_state AS ENUM (
    'closed',   -- as usual; -> open when its platform does not answer
    'open',     -- nothing is claimed; -> half when the platform answers a probe
    'half'      -- one delivery, the trial, may be sent; -> closed when it is answered, -> open when it is not
);

CREATE TYPE event_result AS ENUM (
    'ok',     -- it happened as meant
    'error'   -- events.error says what failed
);

-- A post of a batch, by its place in it; see parse_posts.
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
    request jsonb,
    -- Of a post that was staged.
    post_id uuid
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
    validation_failed int,
    -- The tags that the content was first seen with, where the post has others.
    first_tags text[]
);

-- What an outcome of a send means for its delivery, in the order in which outcomes were given; see decide_outcomes.
-- Of a stale outcome, row_place and status are null.
CREATE TYPE decided_outcome AS (
    place int,
    delivery_id uuid,
    row_place tid,
    message_id uuid,
    channel_id uuid,
    attempt int,
    trace_id text,
    result text,
    status delivery_status,
    on_hold boolean,
    retry_at timestamptz,
    error jsonb,
    provider_message_id text,
    parts jsonb,
    meta jsonb,
    payload_ref text,
    category text,
    scope text,
    code text,
    retry_after_ms bigint,
    migrated_to text,
    platform text,
    rate_group text,
    -- Of the channel, before this commit.
    error_streak int,
    channel_enabled boolean,
    -- The same credential is refused for many channels of the group: the group waits, the channel gets no penalty.
    in_storm boolean,
    -- The API of the platform answered definitely, whatever it said.
    answered boolean
);

-- How a reply of the bot ended, and what becomes of it; see decide_replies.
CREATE TYPE decided_reply AS (
    place bigint,
    workspace_id uuid,
    chat_id text,
    key text,
    reply_id uuid,
    attempt int,
    trace_id text,
    result text,
    -- sent, failed or retry.
    status text,
    retry_at timestamptz,
    -- For events: without the platform's words.
    error jsonb,
    stored_error jsonb,
    provider_message_id text,
    parts jsonb,
    category text,
    scope text,
    code text,
    retry_after_ms bigint,
    answered boolean
);

-- A turn of a chat, as a worker hands it to commit_turns; place is its number in the call.
CREATE TYPE decided_turn AS (
    place bigint,
    workspace_id uuid,
    chat_id text,
    lease_token uuid,
    trace_id text,
    traceparent text,
    updates jsonb,
    next jsonb,
    reply jsonb,
    escalation jsonb,
    -- Of the bot, as far as judge_turns has looked at it.
    provider text,
    -- Of the reply that it is to get; null: none.
    reply_id uuid,
    -- The update has a reply already.
    is_answered boolean
);

-- A delivery that the caller holds, by its place (ctid), and the state it moves to; see move_deliveries.
CREATE TYPE delivery_move AS (
    row_place tid,
    status delivery_status,
    next_retry_at timestamptz,
    hold_reason text,
    -- Null keeps what the delivery has.
    max_attempts int,
    provider_message_id text,
    last_error jsonb,
    -- How many events the caller appends for it.
    events int
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
