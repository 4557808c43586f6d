-- What the guards need to forget in small steps: marks of how far they came, objects that are being collected, and
-- indexes by which the old is found without reading the young.

-- How far a walk that takes more than one call has come, and whether it has reached its end.
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

-- What events refer to and is not there, one row per thing that is missing.
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

-- An object that is being collected: for readers it is gone already. Whoever brings the same bytes waits until the one
-- who collects is done, or can no longer be at it.
ALTER TABLE media_origin
    ADD COLUMN doomed_until timestamptz,
    ADD COLUMN doom uuid,
    ADD CONSTRAINT a_doom_has_an_end CHECK ((doomed_until IS NULL) = (doom IS NULL));

CREATE INDEX media_origin_by_age ON media_origin (last_seen_at);
CREATE INDEX media_origin_doomed ON media_origin (doomed_until) WHERE doomed_until IS NOT NULL;
CREATE INDEX messages_by_media ON messages USING gin ((payload -> 'media') jsonb_path_ops)
    WHERE payload -> 'media' <> '[]';
CREATE INDEX media_fetches_putting ON media_fetches (started_at) WHERE puts <> '{}';

CREATE INDEX staged_posts_finished ON staged_posts (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX bot_inbox_done ON bot_inbox (processed_at) WHERE processed_at IS NOT NULL;
CREATE INDEX bot_outbox_sent ON bot_outbox (sent_at) WHERE sent_at IS NOT NULL;
CREATE INDEX bot_state_by_expiry ON bot_state (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX bot_actions_over ON bot_actions (updated_at) WHERE status <> 'processing';
CREATE INDEX command_outbox_published ON command_outbox (published_at) WHERE published_at IS NOT NULL;
CREATE INDEX alerts_over ON alerts (recovered_at) WHERE recovered_at IS NOT NULL;
