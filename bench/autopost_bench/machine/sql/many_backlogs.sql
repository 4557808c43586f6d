-- $2 posts for every channel of each of the workspaces $1, queued by the triggers of deliveries as any insert would be.
WITH posts AS MATERIALIZED (
    INSERT INTO messages (workspace_id, content_hash, payload)
    SELECT w.workspace_id, encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex'), $3
    FROM unnest($1::uuid[]) AS w (workspace_id)
    CROSS JOIN generate_series(1, $2::int)
    RETURNING workspace_id, message_id, content_hash
), plans AS MATERIALIZED (
    INSERT INTO renderings (workspace_id, message_id, plan_hash, rendered_text, plan, calls)
    SELECT p.workspace_id, p.message_id, $4, $5, $6, 1
    FROM posts p
    RETURNING workspace_id, message_id, rendering_id
)
INSERT INTO deliveries (workspace_id, message_id, channel_id, rendering_id, hash_version, content_hash, render_meta,
                        plan_hash, event_count)
SELECT p.workspace_id, p.message_id, c.channel_id, r.rendering_id, 1, p.content_hash,
       jsonb_build_object('plan_hash', $4::text), $4, 1
FROM posts p
JOIN plans r USING (workspace_id, message_id)
JOIN channels c USING (workspace_id)
