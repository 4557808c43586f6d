-- What happened to a message or a channel, in order. $1 workspace, $2 message or null, $3 channel or null
SELECT action::text, attempt, result::text, error ->> 'code' AS code, meta ->> 'next_retry_at' AS next_retry_at,
       payload_ref, channel_id, ts
FROM events
WHERE workspace_id = $1
  AND ($2::uuid IS NULL OR message_id = $2)
  AND ($3::uuid IS NULL OR channel_id = $3)
ORDER BY seq
