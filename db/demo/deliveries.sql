-- How a message stands, by channel. $1 workspace, $2 message
SELECT d.channel_id, d.target_id, d.platform, d.status::text, d.attempt, d.next_retry_at, d.sent_at, d.created_at,
       d.last_error ->> 'code' AS code
FROM delivery_details d
WHERE d.workspace_id = $1
  AND d.message_id = $2
ORDER BY d.platform, d.target_id
