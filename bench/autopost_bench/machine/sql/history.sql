-- $2 posts that every channel has had long ago. Run with triggers off: history is there, not made.
WITH posts AS MATERIALIZED (
    INSERT INTO messages (workspace_id, content_hash, payload, created_at)
    SELECT $1, encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex'), $3, now() - interval '20 days'
    FROM generate_series(1, $2::int)
    RETURNING message_id, content_hash
)
INSERT INTO deliveries (workspace_id, message_id, channel_id, rendering_id, hash_version, content_hash, status, attempt,
                        provider_message_id, sent_at, render_meta, plan_hash, event_count, created_at, updated_at)
SELECT $1, p.message_id, c.channel_id, p.message_id, 1, p.content_hash, 'sent', 1, '1', now() - interval '20 days',
       jsonb_build_object('plan_hash', $4::text), $4, 3, now() - interval '20 days', now() - interval '20 days'
FROM posts p
JOIN channels c ON c.workspace_id = $1
