-- The shop bot in MAX, and the long-running actions it shows in a chat.

-- A chat, of MAX or of another front end. Its row is what changes of the chat are ordered by: whoever changes something
-- in a chat locks the row and takes the next number, so numbers are committed in their order.
CREATE TABLE bot_chats (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    chat_id text NOT NULL,
    -- The number of the last change.
    seq bigint NOT NULL DEFAULT 0,
    -- Retention deleted changes up to this number: a reader that is further behind has to read anew.
    forgotten_seq bigint NOT NULL DEFAULT 0,
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, chat_id)
);

CREATE INDEX bot_chats_by_change ON bot_chats (changed_at);

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
    -- The number of the change in its chat; null for what the chat does not show.
    seq bigint,
    PRIMARY KEY (workspace_id, provider, chat_id, provider_message_id)
);

CREATE INDEX bot_inbox_changes ON bot_inbox (workspace_id, chat_id, seq) WHERE seq IS NOT NULL;

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
    -- The number of its last change in the chat.
    seq bigint NOT NULL,
    PRIMARY KEY (workspace_id, chat_id, action_id),
    CONSTRAINT status_is_known CHECK (status IN ('processing', 'done', 'error')),
    CONSTRAINT display_text_is_short CHECK (length(display_text) <= 300)
);

CREATE INDEX bot_actions_processing ON bot_actions (workspace_id, chat_id, updated_at DESC) WHERE status = 'processing';

CREATE INDEX bot_actions_by_age ON bot_actions (created_at) WHERE status = 'processing';

CREATE INDEX bot_actions_changes ON bot_actions (workspace_id, chat_id, seq);

CREATE INDEX bot_actions_over ON bot_actions (updated_at) WHERE status <> 'processing';
