-- The alert of posts that are stuck knows the deadline that is configured, as the gauge does.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS condition_staged_posts(interval);

-- The poll asks channel_due, which is always right; a copy per workspace that every claim wrote was read by nobody.
-- squawk-ignore ban-drop-column
ALTER TABLE workspace_due DROP COLUMN next_due_at;

-- What is noted of a message itself, for its timeline. Deliveries' events have their own index and are not in this one.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX events_of_message ON events (message_id, seq) WHERE delivery_id IS NULL AND message_id IS NOT NULL;
