-- An item of a source whose media is gone and of which nothing else is left may come again, a few times.

ALTER TABLE pull_receipts
    -- How often it ended without anything to post.
    ADD COLUMN failures int NOT NULL DEFAULT 0,
    -- As if there were no receipt, but for that count.
    ADD COLUMN released_at timestamptz;

CREATE INDEX pull_receipts_released ON pull_receipts (workspace_id, source_id, released_at)
    WHERE released_at IS NOT NULL;

-- Finishing a post also says which of its media it had to go without.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS finish_staged_post(uuid, uuid, uuid, jsonb, boolean);
