-- A channel is a row: nothing else has to know. $1 workspace, $2 target, $3 enabled
INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group, title, rate_rps, tags, enabled)
VALUES ($1, 'telegram', $2, 'demo-telegram', 'demo-telegram', 'Added while running', 0.9, '{demo,added}', $3)
RETURNING channel_id
