-- Publications: one approved creative for one channel at one time, and the outbox that asks for its sending.

-- A publication names its channel; routing and the dedup of posts do not apply. Its delivery, once there is one, has the
-- policy `publication`. The trigger publication_changed writes an event for each change, so the log tells its life.
CREATE TABLE publications (
    workspace_id uuid NOT NULL,
    publication_id uuid NOT NULL DEFAULT new_id(),
    channel_id uuid NOT NULL,
    -- {"text", "parse_mode", "media": [{"type", "file_id" | "blob_ref"}], "buttons", "disable_web_page_preview"}
    creative_draft jsonb NOT NULL,
    -- See is_legal_publication_move.
    status text NOT NULL DEFAULT 'draft',
    scheduled_at timestamptz,
    -- In which zone people read its times; for display only.
    timezone text,
    -- So long after scheduled_at it may still go out; later it is paused.
    late_after interval NOT NULL DEFAULT '24 hours',
    -- Rises with every change of content, channel or time. Commands and callers name it.
    version int NOT NULL DEFAULT 1,
    -- Who is told when it is paused or failed: telegram:<chat>, mailto:…, https://… or a name.
    owner text,
    created_by text,
    -- Who made the last change; null when the services did.
    changed_by text,
    approved_by text,
    approved_at timestamptz,
    -- What was approved is what goes out.
    approved_plan_hash text,
    hash_version int,
    content_hash text,
    -- text | photo | video | document | animation | media_group
    media_type text NOT NULL,
    delivery_id uuid,
    -- Null where a person found it in the channel and gave no id.
    published_message_id text,
    published_at timestamptz,
    -- When its delivery ended, however.
    settled_at timestamptz,
    -- Why it waits for a person: missed, unconfirmed, plan_changed, channel_disabled, file_id_expired.
    pause_code text,
    cancel_reason text,
    -- The error of its delivery with `error_type`; see publication_error_type.
    last_error jsonb,
    trace_id text,
    traceparent text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, publication_id),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels,
    CONSTRAINT status_is_known CHECK (status IN
        ('draft', 'approved', 'scheduled', 'publishing', 'published', 'paused', 'failed', 'cancelled')),
    CONSTRAINT media_type_is_known CHECK (media_type IN
        ('text', 'photo', 'video', 'document', 'animation', 'media_group')),
    CONSTRAINT scheduled_has_a_time CHECK (status NOT IN ('scheduled', 'publishing') OR scheduled_at IS NOT NULL),
    CONSTRAINT approved_names_its_plan CHECK (
        status NOT IN ('approved', 'scheduled', 'publishing') OR approved_plan_hash IS NOT NULL),
    CONSTRAINT published_says_when CHECK (status <> 'published' OR published_at IS NOT NULL),
    CONSTRAINT paused_says_why CHECK (status <> 'paused' OR pause_code IS NOT NULL),
    CONSTRAINT scheduled_at_is_sane CHECK (scheduled_at BETWEEN '2000-01-01 00:00Z' AND '2200-01-01 00:00Z'),
    CONSTRAINT late_after_is_sane CHECK (late_after BETWEEN interval '1 second' AND interval '366 days'),
    CONSTRAINT creative_draft_is_small CHECK (octet_length(creative_draft::text) <= 262144)
);

CREATE INDEX publications_due ON publications (scheduled_at) WHERE status = 'scheduled';

-- The calendar, in the order of list_publications. The condition, always true, keeps it out of plans that look for a
-- publication by its key: without statistics the planner would prefer it and read all of the tenant.
CREATE INDEX publications_by_time ON publications (workspace_id, coalesce(scheduled_at, 'infinity'), publication_id)
WHERE version > 0;

-- What the sweeps look at: begun, not ended; and due, not begun.
CREATE INDEX publications_publishing ON publications (updated_at) WHERE status = 'publishing';

CREATE INDEX publications_to_begin ON publications (updated_at) WHERE status = 'publishing' AND delivery_id IS NULL;

-- All that have not ended: what the metrics and the status page count.
CREATE INDEX publications_open ON publications (workspace_id, status) WHERE status NOT IN ('published', 'cancelled');

CREATE INDEX publications_in_trouble ON publications (workspace_id, updated_at) WHERE status IN ('paused', 'failed');

CREATE UNIQUE INDEX one_publication_per_delivery ON publications (delivery_id, workspace_id)
WHERE delivery_id IS NOT NULL;

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

CREATE INDEX command_outbox_dead ON command_outbox (workspace_id, created_at)
WHERE subject = 'delivery.commands.dlq';

CREATE INDEX command_outbox_published ON command_outbox (published_at) WHERE published_at IS NOT NULL;

-- What the owner of a publication is told when it is paused or failed: once per version and code.
CREATE TABLE publication_notices (
    workspace_id uuid NOT NULL,
    publication_id uuid NOT NULL,
    version int NOT NULL,
    code text NOT NULL,
    -- Where it goes: telegram:<chat>, mailto:<address> or https://…
    owner text NOT NULL,
    -- telegram | smtp | webhook: see owner_target.
    target text NOT NULL,
    -- What it says, as of when it was written: see write_owner_notice.
    notice jsonb NOT NULL,
    attempts int NOT NULL DEFAULT 0,
    next_try_at timestamptz NOT NULL DEFAULT now(),
    told_at timestamptz,
    -- Not tried any more; last_error says why.
    given_up_at timestamptz,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, publication_id, version, code),
    FOREIGN KEY (workspace_id, publication_id) REFERENCES publications ON DELETE CASCADE,
    CONSTRAINT target_is_known CHECK (target IN ('telegram', 'smtp', 'webhook'))
);

CREATE INDEX publication_notices_untold ON publication_notices (next_try_at)
WHERE told_at IS NULL AND given_up_at IS NULL;
