-- Channels, their rate limits, templates and credentials.

CREATE TABLE templates (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    template_id text NOT NULL,
    version int NOT NULL DEFAULT 1,
    body text NOT NULL,
    defaults jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    -- In which markup the body is written; without one it has none of its own.
    parse_mode text,
    PRIMARY KEY (workspace_id, template_id, version),
    CONSTRAINT version_is_positive CHECK (version > 0),
    CONSTRAINT parse_mode_is_known CHECK (parse_mode IN ('HTML', 'Markdown')),
    CONSTRAINT body_is_not_longer_than_a_post CHECK (length(body) <= 65536),
    -- Otherwise no post of the workspace could be compiled: services could not read them.
    CONSTRAINT defaults_are_an_object CHECK (jsonb_typeof(defaults) = 'object'),
    CONSTRAINT defaults_are_small CHECK (octet_length(defaults::text) <= 65536),
    CONSTRAINT defaults_are_not_deep CHECK (NOT jsonb_path_exists(defaults, '$.**{17}')),
    CONSTRAINT defaults_have_readable_numbers CHECK (
        NOT jsonb_path_exists(defaults, '$.** ? (@.type() == "number" && (@ > 1e15 || @ < -1e15))'))
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
    -- Channels with the same value share a rendering. Written by the trigger channel_profile.
    profile_hash text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- When rate_rps or rate_group last changed. Written by the trigger rate_changed.
    rate_since timestamptz NOT NULL DEFAULT now(),
    -- Null: the value of delivery_policy.
    max_attempts int,
    PRIMARY KEY (workspace_id, channel_id),
    CONSTRAINT one_channel_per_destination UNIQUE (target_id, platform, workspace_id),
    CONSTRAINT platform_is_a_name CHECK (platform ~ '^[a-z][a-z0-9_]*$'),
    CONSTRAINT target_id_is_not_empty CHECK (target_id <> ''),
    CONSTRAINT send_mode_is_known CHECK (send_mode IN ('text', 'media', 'mixed')),
    CONSTRAINT rate_rps_is_a_rate CHECK (rate_rps = 0 OR rate_rps BETWEEN 0.000001 AND 1000000),
    CONSTRAINT max_parallel_is_a_number_of_calls CHECK (max_parallel BETWEEN 1 AND 1000000),
    CONSTRAINT max_attempts_is_sane CHECK (max_attempts BETWEEN 1 AND 100),
    CONSTRAINT window_mode_is_known CHECK (window_mode IN ('immediate', 'windowed')),
    CONSTRAINT windowed_has_windows CHECK (window_mode <> 'windowed' OR posting_window IS NOT NULL),
    CONSTRAINT dedup_ttl_is_a_century_at_most CHECK (dedup_ttl_hours BETWEEN 0 AND 876000),
    CONSTRAINT a_pause_ends_or_does_not CHECK (paused_until < '9000-01-01' OR paused_until = 'infinity'),
    CONSTRAINT error_streak_is_not_negative CHECK (error_streak >= 0),
    CONSTRAINT settings_is_an_object CHECK (jsonb_typeof(settings) = 'object'),
    -- Out-of-range numbers would make every enqueue and every claim of the workspace fail.
    CONSTRAINT settings_have_readable_numbers CHECK (
        NOT jsonb_path_exists(settings, '$.** ? (@.type() == "number" && (@ > 1e15 || @ < -1e15))')),
    CONSTRAINT route_filter_is_an_object CHECK (jsonb_typeof(route_filter) = 'object'),
    CONSTRAINT tags_are_lowercase CHECK (lower(tags::text) = tags::text),
    CONSTRAINT on_ambiguous_is_known CHECK (on_ambiguous IN ('resend', 'verify', 'hold')),
    -- {"policy": "all"} | {"policy": "newest", "keep": 10} | {"policy": "drop_older", "older_than": "2 hours"}
    CONSTRAINT catch_up_is_known CHECK (CASE catch_up ->> 'policy'
        WHEN 'all' THEN true
        WHEN 'newest' THEN coalesce(jsonb_typeof(catch_up -> 'keep') = 'number'
                                    AND catch_up ->> 'keep' ~ '^[0-9]{1,6}$', false)
        WHEN 'drop_older' THEN coalesce(
            catch_up ->> 'older_than'
                ~ '^([1-9][0-9]{0,5} (second|minute|hour)|[1-9][0-9]{0,4} day|[1-9][0-9]{0,3} week)s?$', false)
        ELSE false
    END)
) WITH (fillfactor = 70);

CREATE INDEX channels_by_tag ON channels USING gin (tags);

-- Usually empty: tells a commit whether any channel has an error streak to reset.
CREATE INDEX channels_in_trouble ON channels (workspace_id) WHERE error_streak > 0;

-- Usually empty: tells a claim whether a pause has ended after which a catch-up policy applies.
CREATE INDEX channels_to_catch_up ON channels (workspace_id)
WHERE paused_until IS NOT NULL AND catch_up ->> 'policy' <> 'all';

-- Usually empty: tells an enqueue whether any channel has its own max_attempts.
CREATE INDEX channels_with_own_attempts ON channels (workspace_id) INCLUDE (channel_id, max_attempts)
WHERE max_attempts IS NOT NULL;

CREATE TABLE platform_limits (
    workspace_id uuid NOT NULL REFERENCES workspaces,
    platform text NOT NULL,
    rate_group text NOT NULL,
    -- Requests per second. The default is 0.9 of what Telegram and MAX allow a token; null or 0 is no limit.
    rate_rps numeric DEFAULT 27,
    next_allowed_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- When rate_rps last changed. Written by the trigger rate_changed.
    rate_since timestamptz NOT NULL DEFAULT now(),
    -- The circuit. Written under the lock of the row by functions/circuit alone.
    circuit circuit_state NOT NULL DEFAULT 'closed',
    -- While closed: the deliveries that got no answer since the platform last gave one, the latest last.
    failed_deliveries uuid[] NOT NULL DEFAULT '{}',
    opened_at timestamptz,
    -- When the platform is to be asked who it is; null: not at all. Also the fence of a probe that is under way.
    probe_at timestamptz,
    probed_at timestamptz,
    -- Since opened_at.
    probes int NOT NULL DEFAULT 0,
    -- While half: the one delivery that may be sent; null until one is claimed.
    trial uuid,
    outage_error jsonb,
    -- A dispatcher has calls of the group that are not answered: nothing is claimed until then. See stall_groups.
    stalled_until timestamptz,
    -- next_allowed_at as the last reply of a bot left it: while both are the same, the next slot is the posts'.
    reply_gate timestamptz,
    PRIMARY KEY (workspace_id, platform, rate_group),
    CONSTRAINT rate_rps_is_a_rate CHECK (rate_rps = 0 OR rate_rps BETWEEN 0.000001 AND 1000000),
    CONSTRAINT circuit_that_is_not_closed_has_a_beginning CHECK ((circuit = 'closed') = (opened_at IS NULL)),
    CONSTRAINT circuit_that_is_not_closed_is_probed CHECK (circuit = 'closed' OR probe_at IS NOT NULL),
    CONSTRAINT failures_are_counted_while_closed CHECK (failed_deliveries = '{}' OR circuit = 'closed'),
    CONSTRAINT two_failures_at_most_while_closed CHECK (cardinality(failed_deliveries) <= 2),
    CONSTRAINT trial_only_while_half CHECK (trial IS NULL OR circuit = 'half')
) WITH (fillfactor = 50);

-- Usually empty: tells a commit whether the circuit of any group depends on its outcomes.
CREATE INDEX platform_limits_in_doubt ON platform_limits (workspace_id)
WHERE failed_deliveries <> '{}' OR circuit = 'half';

-- Usually empty: tells take_probes whether any platform has to be asked.
CREATE INDEX platform_limits_away ON platform_limits (platform)
WHERE circuit <> 'closed' OR probe_at IS NOT NULL;

-- The credential of a channel after a rotation. It overrides channels.auth_ref; follow_auth_ref keeps both the same.
CREATE TABLE channel_auth (
    workspace_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    auth_ref text NOT NULL,
    rotated_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, channel_id),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels ON DELETE CASCADE
);

-- Where the secret of a credential is stored: 'env:NAME', 'file:PATH', or 'sealed' with its AES-GCM ciphertext.
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
