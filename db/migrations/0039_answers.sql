-- What became of the posts of a batch goes from function to function as rows, no longer as documents that each step takes
-- apart and puts together again.
CREATE TYPE post_answer AS (
    place int,
    message_id uuid,
    is_new boolean,
    routed int,
    enqueued int,
    deduped int,
    validation_failed int
);

-- Routes are numbered when they are found, and the ids of renderings after them.
ALTER TYPE route
    ADD ATTRIBUTE number int,
    ADD ATTRIBUTE shows int;

-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS enqueue_posts(uuid, post[], route[], timestamptz, boolean);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS enqueue_distinct_posts(uuid, post[], route[], timestamptz, boolean);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS take_receipts(uuid, uuid, int, post[], text[]);

-- Its answer is written once, as text, and read by whoever called: its callers cast it to text before and now.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS admit_posts(uuid, uuid, jsonb, text[], boolean[], boolean);

-- Most posts have no tags, and each of them was in this index all the same.
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX messages_by_tag;
CREATE INDEX messages_by_tag ON messages USING gin (tags) WHERE tags <> '{}';
