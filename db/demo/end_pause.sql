-- An operator lets a paused channel try again. $1 workspace, $2 channel
UPDATE channels
SET paused_until = NULL
WHERE workspace_id = $1
  AND channel_id = $2
