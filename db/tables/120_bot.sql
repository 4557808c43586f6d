-- The shop bot in MAX, and the long-running actions it shows in a chat.

-- How the bot of a workspace answers: one bot per workspace, a second bot is a second workspace. Without a row, or while
-- it is not enabled, updates are stored as done and nobody answers.
CREATE TABLE bot_settings (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    provider text NOT NULL DEFAULT 'max',
    enabled boolean NOT NULL DEFAULT true,
    auth_ref text NOT NULL,
    -- Replies take their slots from the rate group that posts with the same token use.
    rate_group text NOT NULL,
    -- Calls per second into one chat: 0.9 of what MAX allows.
    chat_rps numeric NOT NULL DEFAULT 1.8,
    -- How many updates of one chat are answered per minute; null: all.
    chat_per_minute int DEFAULT 20,
    -- How long a scenario waits for the customer. Each of its turns renews it.
    state_ttl interval NOT NULL DEFAULT '30 minutes',
    -- Where no rule has opened the conversation.
    max_turns int NOT NULL DEFAULT 5,
    -- The so-manieth message in a row that no rule matches is escalated; before that the bot asks to clarify.
    fallback jsonb NOT NULL DEFAULT '{"escalate_after": 2}',
    -- {"mode": "contacts"}: says where to find a person. {"mode": "handoff", "hold": "12 hours"}: is silent meanwhile.
    escalation jsonb NOT NULL DEFAULT '{"mode": "contacts"}',
    -- The kinds of chats that are answered: dialog, chat, channel.
    answer_in text[] NOT NULL DEFAULT '{dialog}',
    -- How many unanswered texts of a chat make one turn; 0: each its own.
    gather int NOT NULL DEFAULT 0,
    -- An update that is older than the newest handled one by more than this is late: it changes no state.
    late_after interval NOT NULL DEFAULT '30 seconds',
    timezone text NOT NULL DEFAULT 'Europe/Moscow',
    -- When operators are there, in the format of channels.posting_window; null: always.
    hours jsonb,
    -- What the bot says beside the rules: greeting, clarify, escalate, escalate_closed, cancelled, invalid, attachment,
    -- flood, stale_button, expired. One that is missing is not said.
    texts jsonb NOT NULL DEFAULT '{}',
    -- Rows of buttons under greeting and clarify: [["Delivery", "Payment"], ["Contacts"]].
    menu jsonb NOT NULL DEFAULT '[]',
    -- A whole message that is one of these ends any scenario.
    cancel_words text[] NOT NULL DEFAULT '{отмена,отменить,стоп,сначала,меню}',
    -- Rises with each change of the rules and settings: see note_rules_changed.
    rules_seq bigint NOT NULL DEFAULT 0,
    -- Where updates have to come to, as `autopost bot subscribe` said; null: anywhere.
    webhook_url text,
    -- Where the provider sends updates to: [{"url", "update_types"}]; when it was asked last; and since when it does not
    -- send them to webhook_url. A provider unsubscribes a webhook that fails for hours.
    subscriptions jsonb,
    subscriptions_read_at timestamptz,
    webhook_lost_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id),
    FOREIGN KEY (workspace_id, auth_ref, provider) REFERENCES credential_bindings (workspace_id, auth_ref, platform),
    FOREIGN KEY (workspace_id, provider, rate_group) REFERENCES platform_limits (workspace_id, platform, rate_group),
    CONSTRAINT chat_rps_is_a_rate CHECK (chat_rps BETWEEN 0.000001 AND 1000000),
    CONSTRAINT chat_per_minute_is_positive CHECK (chat_per_minute > 0),
    CONSTRAINT state_ttl_is_positive CHECK (state_ttl > interval '0'),
    CONSTRAINT max_turns_is_positive CHECK (max_turns > 0),
    CONSTRAINT late_after_is_not_negative CHECK (late_after >= interval '0'),
    CONSTRAINT gather_is_not_negative CHECK (gather >= 0),
    CONSTRAINT answer_in_is_known CHECK (answer_in <@ '{dialog,chat,channel}'),
    CONSTRAINT escalate_after_is_positive
        CHECK (coalesce(jsonb_typeof(fallback -> 'escalate_after') = 'number', false)
               AND (fallback ->> 'escalate_after')::numeric >= 1),
    CONSTRAINT escalation_mode_is_known CHECK (coalesce(escalation ->> 'mode', '') IN ('contacts', 'handoff')),
    CONSTRAINT texts_are_an_object CHECK (jsonb_typeof(texts) = 'object'),
    CONSTRAINT menu_is_an_array CHECK (jsonb_typeof(menu) = 'array')
);

-- When a bot's chats were last taken: whoever waits longest goes first.
CREATE TABLE bot_due (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    last_taken_at timestamptz NOT NULL,
    PRIMARY KEY (workspace_id)
) WITH (fillfactor = 50);

-- A chat, of MAX or of another front end. Its row is what changes of the chat are ordered by: whoever changes something
-- in a chat locks the row and takes the next number, so numbers are committed in their order. A bot that has the lease
-- of the chat is the only one that answers in it.
CREATE TABLE bot_chats (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    chat_id text NOT NULL,
    -- The number of the last change.
    seq bigint NOT NULL DEFAULT 0,
    -- Retention deleted changes up to this number: a reader that is further behind has to read anew.
    forgotten_seq bigint NOT NULL DEFAULT 0,
    changed_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The customer of a dialog.
    user_id text,
    chat_type text,
    -- From when on the bot has something to do here: an update to answer, or a reply to send. Null: nothing. A take leaves
    -- it as it is: then it changes no index, and who dies leaves the chat due.
    due_at timestamptz,
    -- A fresh token for each take, so what a worker does after its lease is refused.
    lease_token uuid,
    lease_until timestamptz,
    -- How often it was taken since its last commit: three times is too often, see take_chats.
    takes int NOT NULL DEFAULT 0,
    -- The gate of the chat's own rate.
    next_allowed_at timestamptz,
    -- How many updates came in the minute that began then.
    minute_started_at timestamptz,
    minute_count int NOT NULL DEFAULT 0,
    -- The newest update that was handled, by the provider's clock.
    last_provider_ts bigint,
    last_provider_seq numeric(20),
    -- The customer stopped the bot: nothing can be sent until they start it again.
    stopped_at timestamptz,
    PRIMARY KEY (workspace_id, chat_id),
    CONSTRAINT lease_has_token_and_end CHECK ((lease_token IS NULL) = (lease_until IS NULL))
) WITH (fillfactor = 50);

CREATE INDEX bot_chats_by_change ON bot_chats (changed_at);

CREATE INDEX bot_chats_by_due ON bot_chats (workspace_id, due_at) WHERE due_at IS NOT NULL;

CREATE INDEX bot_chats_stopped ON bot_chats (workspace_id) WHERE stopped_at IS NOT NULL;

CREATE INDEX bot_chats_by_user ON bot_chats (workspace_id, user_id) WHERE user_id IS NOT NULL;

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
    -- When the provider says it happened (ms), and its place among those of the same time: the order of a chat.
    provider_ts bigint,
    provider_seq numeric(20),
    user_id text,
    chat_type text,
    -- Why nobody answers it.
    ignored text,
    PRIMARY KEY (workspace_id, provider, chat_id, provider_message_id),
    CONSTRAINT ignored_is_known CHECK (ignored IN (
        'bot_sender', 'not_a_dialog', 'no_bot', 'chat_flood', 'unknown_kind', 'stopped')),
    -- The first one of a flood waits until the bot has said so.
    CONSTRAINT ignored_is_done CHECK (ignored IS NULL OR ignored = 'chat_flood' OR processed_at IS NOT NULL)
);

CREATE INDEX bot_inbox_changes ON bot_inbox (workspace_id, chat_id, seq) WHERE seq IS NOT NULL;

CREATE INDEX bot_inbox_unanswered ON bot_inbox (workspace_id, chat_id, provider_ts, provider_seq, ts)
WHERE processed_at IS NULL;

CREATE INDEX bot_inbox_done ON bot_inbox (processed_at) WHERE processed_at IS NOT NULL;

-- Replies: at most one per update. The lease of the chat is also that of its reply.
CREATE TABLE bot_outbox (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    chat_id text NOT NULL,
    inbound_provider_message_id text NOT NULL,
    -- Names it where the chat must not be named: in circuits, events, commands of operators.
    reply_id uuid NOT NULL DEFAULT new_id(),
    -- The order of the replies of a chat.
    place bigint GENERATED ALWAYS AS IDENTITY,
    -- A notice says that an update will not be answered.
    kind text NOT NULL DEFAULT 'reply',
    response_hash text NOT NULL,
    plan_hash text,
    -- {"plan", "progress": the parts that are acknowledged}.
    response jsonb NOT NULL DEFAULT '{}',
    attempt int NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    -- The slot of the attempt that is under way; null between attempts. One that a lease left behind perhaps was sent.
    slot_at timestamptz,
    sent_at timestamptz,
    failed_at timestamptz,
    provider_message_id text,
    last_error jsonb,
    -- The number of the change in its chat; null until it is sent.
    seq bigint,
    trace_id text,
    traceparent text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, chat_id, inbound_provider_message_id),
    CONSTRAINT kind_is_known CHECK (kind IN ('reply', 'notice')),
    CONSTRAINT sent_or_failed CHECK (sent_at IS NULL OR failed_at IS NULL),
    CONSTRAINT under_way_while_unsent CHECK (slot_at IS NULL OR (sent_at IS NULL AND failed_at IS NULL))
);

CREATE INDEX bot_outbox_unsent ON bot_outbox (workspace_id, chat_id, place)
WHERE sent_at IS NULL AND failed_at IS NULL;

CREATE INDEX bot_outbox_ended ON bot_outbox (coalesce(sent_at, failed_at))
WHERE sent_at IS NOT NULL OR failed_at IS NOT NULL;

CREATE INDEX bot_outbox_changes ON bot_outbox (workspace_id, chat_id, seq) WHERE seq IS NOT NULL;

-- A hash: a plan made while the table was empty would otherwise look for the reply to an update by the workspace alone.
CREATE INDEX bot_outbox_by_reply ON bot_outbox USING hash (reply_id);

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
    -- The variable that takes what the customer wrote, and what it must be: {"kind": "order", "digits": [4, 12]}.
    capture text,
    accept jsonb,
    response_template text NOT NULL,
    -- Said instead of the answer when the customer's text is not accepted; null: texts.invalid of the settings.
    invalid_template text,
    -- Rows of buttons under the answer.
    buttons jsonb NOT NULL DEFAULT '[]',
    next_state text,
    description text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, rule_id, version),
    CONSTRAINT pattern_mode_is_known
        CHECK (coalesce(pattern ->> 'mode', '') IN ('contains', 'words', 'choice', 'any')),
    CONSTRAINT pattern_has_keywords
        CHECK (pattern ->> 'mode' NOT IN ('contains', 'words')
               OR coalesce(jsonb_typeof(pattern -> 'keywords') = 'array', false)),
    CONSTRAINT choice_has_options
        CHECK (pattern ->> 'mode' <> 'choice' OR coalesce(jsonb_typeof(pattern -> 'options') = 'array', false)),
    CONSTRAINT max_turns_is_positive CHECK (max_turns > 0),
    CONSTRAINT only_a_state_captures CHECK (capture IS NULL OR state IS NOT NULL),
    CONSTRAINT only_captured_is_checked CHECK (accept IS NULL OR capture IS NOT NULL),
    CONSTRAINT accept_is_an_object CHECK (jsonb_typeof(accept) = 'object'),
    CONSTRAINT buttons_are_an_array CHECK (jsonb_typeof(buttons) = 'array')
);

CREATE UNIQUE INDEX one_enabled_version_per_rule ON bot_rules (workspace_id, rule_id) WHERE enabled;

-- What turns were decided by. Rules may be edited in place: the log names the hash, and this row proves what stood there.
CREATE TABLE bot_rulesets (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    ruleset_hash text NOT NULL,
    rules jsonb NOT NULL,
    settings jsonb NOT NULL,
    first_used_at timestamptz NOT NULL DEFAULT now(),
    -- By a replica, when rules had changed or it started.
    last_loaded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, ruleset_hash)
);

CREATE INDEX bot_rulesets_by_age ON bot_rulesets (workspace_id, first_used_at);

CREATE TABLE bot_state (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    chat_id text NOT NULL,
    state text NOT NULL DEFAULT 'default',
    context jsonb NOT NULL DEFAULT '{"turns": 0}',
    expires_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, chat_id)
);

CREATE INDEX bot_state_handed_over ON bot_state (workspace_id) WHERE state = 'operator';

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

CREATE INDEX bot_logs_released ON bot_logs (workspace_id, chat_id) WHERE meta ->> 'outcome' = 'released';

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

CREATE INDEX bot_actions_by_age ON bot_actions (workspace_id, created_at) WHERE status = 'processing';

-- The condition, always true, keeps it out of plans that look for an action by its key: without statistics the planner
-- would prefer it and read the history of the chat.
CREATE INDEX bot_actions_changes ON bot_actions (workspace_id, chat_id, seq) WHERE seq > 0;

CREATE INDEX bot_actions_over ON bot_actions (updated_at) WHERE status <> 'processing';
