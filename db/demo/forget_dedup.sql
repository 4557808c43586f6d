-- Sabotage: these channels remember nothing of what they sent. $1 workspace, $2 channels
UPDATE channels
SET dedup_ttl_hours = 0
WHERE workspace_id = $1
  AND channel_id = ANY ($2)
