-- After the demo: the added channel rests, the others are as the seed made them. $1 workspace
UPDATE channels
SET enabled = NOT tags @> '{added}',
    paused_until = NULL,
    error_streak = 0,
    dedup_ttl_hours = 168
WHERE workspace_id = $1
