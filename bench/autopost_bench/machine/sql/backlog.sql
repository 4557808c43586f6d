-- $2 posts, each $8 times, for every channel that matches $3, queued by the triggers of deliveries as any insert would be.
WITH posts AS MATERIALIZED (
    INSERT INTO messages (workspace_id, content_hash, payload)
    SELECT $1, encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex'), $4
    FROM generate_series(1, $2::int)
    RETURNING message_id, content_hash
), plans AS MATERIALIZED (
    INSERT INTO renderings (workspace_id, message_id, plan_hash, rendered_text, plan, calls)
    SELECT $1, p.message_id, $5, $6, $7, 1
    FROM posts p
    RETURNING message_id, rendering_id
)
INSERT INTO deliveries (workspace_id, message_id, channel_id, rendering_id, hash_version, content_hash, render_meta,
                        plan_hash, event_count)
SELECT $1, p.message_id, c.channel_id, r.rendering_id, 1, p.content_hash, jsonb_build_object('plan_hash', $5::text),
       $5, 1
FROM posts p
JOIN plans r USING (message_id)
JOIN channels c
  ON c.workspace_id = $1
 AND c.target_id ~ $3
CROSS JOIN generate_series(1, $8::int)
