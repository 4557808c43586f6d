-- Who pulls a source right now and for which run, how its last pull ended, and what is due.

ALTER TABLE pull_sources
    ADD COLUMN run_id uuid,
    ADD COLUMN pulled_at timestamptz,
    ADD COLUMN last_error jsonb,
    ADD CONSTRAINT every_is_a_second_at_least CHECK (every >= interval '1 second'),
    ADD CONSTRAINT a_lease_is_for_a_run CHECK ((lease_token IS NULL) = (lease_until IS NULL)
                                               AND (lease_token IS NULL) = (run_id IS NULL));

CREATE INDEX pull_sources_due ON pull_sources (next_pull_at) WHERE enabled;
CREATE INDEX pull_sources_leased ON pull_sources (lease_until) WHERE lease_token IS NOT NULL;
