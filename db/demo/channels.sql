-- The enabled channels of a workspace. $1 workspace
SELECT channel_id, platform, target_id, title
FROM channels
WHERE workspace_id = $1
  AND enabled
ORDER BY platform, title, channel_id
