-- The event of each delivery that waits in workspace $1, as its post's enqueueing would have written it just now.
INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action)
SELECT d.workspace_id, d.delivery_id, d.message_id, d.channel_id, 'enqueue'
FROM deliveries d
WHERE d.workspace_id = $1
  AND d.status = 'queued'
