-- Posts whose media is fetched by workers, and the fetches themselves: one at a time for a URL of a workspace.

-- What the post came from, as its message will say it; the request alone does not tell.
ALTER TABLE staged_posts
    ADD COLUMN source jsonb NOT NULL DEFAULT '{}',
    ADD CONSTRAINT only_what_is_fetched_has_a_lease CHECK ((status = 'fetching') = (lease_until IS NOT NULL));

-- Work is chosen workspace by workspace, so that one with a long line costs the others nothing.
-- squawk-ignore require-concurrent-index-deletion -- nobody has staged a post before this
DROP INDEX staged_posts_waiting;
CREATE INDEX staged_posts_waiting ON staged_posts (workspace_id, next_attempt_at)
    WHERE status IN ('staged', 'fetching');
CREATE INDEX staged_posts_fetching ON staged_posts (workspace_id) WHERE status = 'fetching';

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
