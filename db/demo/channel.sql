-- The state of one channel. $1 workspace, $2 channel
SELECT enabled, error_streak, paused_until IS NOT NULL AND paused_until > clock_timestamp() AS paused
FROM channels
WHERE workspace_id = $1
  AND channel_id = $2
