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
