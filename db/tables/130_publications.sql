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
