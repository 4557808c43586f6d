-- verify_publications(workspace_id, after, limit, most) -> publications that disagree with their events or their delivery
--
-- Walked as verify_deliveries. A publication whose events are forgotten is compared with its delivery alone.
--
-- publication            status or version is not that of its last event; or it has no event
-- publication_move       an event begins at another status than the one before it has led to
-- publication_delivery   published, and its delivery is not sent with this message; or the reverse; or it is of another
--                        channel
CREATE OR REPLACE FUNCTION verify_publications(
    p_workspace_id uuid,
    p_after uuid,
    p_limit int DEFAULT 1000,
    p_most int DEFAULT 100
)
RETURNS TABLE (checked bigint, last_id uuid, found bigint, differences jsonb)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH page AS MATERIALIZED (
        SELECT p.publication_id, p.channel_id, p.status, p.version, p.delivery_id, p.published_message_id,
               p.created_at, p.updated_at
        FROM publications p
        WHERE p.workspace_id = p_workspace_id
          AND p.publication_id > p_after
        ORDER BY p.publication_id
        LIMIT p_limit
    ), remembered AS MATERIALIZED (
        SELECT min(e.ts) AS since FROM events e WHERE e.workspace_id = p_workspace_id
    ), led (action, status) AS (
        VALUES ('publication_drafted', 'draft'), ('publication_approved', 'approved'),
               ('publication_scheduled', 'scheduled'), ('publication_due', 'publishing'),
               ('publication_published', 'published'), ('publication_failed', 'failed'),
               ('publication_paused', 'paused'), ('publication_cancelled', 'cancelled')
    ), told AS MATERIALIZED (
        SELECT e.id, e.publication_id, e.version, l.status, e.from_status,
               lag(l.status) OVER w AS before, row_number() OVER w = 1 AS is_first,
               lead(e.id) OVER w IS NULL AS is_last
        FROM (
            SELECT e.id, e.seq, e.action::text AS action, (e.meta ->> 'publication_id')::uuid AS publication_id,
                   (e.meta ->> 'version')::int AS version, e.meta ->> 'from_status' AS from_status
            FROM (SELECT p.channel_id, min(p.created_at) AS since FROM page p GROUP BY p.channel_id) AS c
            CROSS JOIN LATERAL (
                SELECT e.*
                FROM events e
                WHERE e.workspace_id = p_workspace_id
                  AND e.channel_id = c.channel_id
                  AND e.delivery_id IS NULL
                  AND e.ts >= c.since
            ) AS e
        ) AS e
        JOIN led l USING (action)
        JOIN page p USING (publication_id)
        WINDOW w AS (PARTITION BY e.publication_id ORDER BY e.seq)
    ), wrong AS MATERIALIZED (
        SELECT 'publication' AS kind, p.publication_id, p.channel_id, NULL::uuid AS event_id,
               CASE WHEN t.id IS NULL THEN 'none' ELSE format('%s, version %s', t.status, t.version) END AS told,
               format('%s, version %s', p.status, p.version) AS found
        FROM page p
        CROSS JOIN remembered r
        LEFT JOIN told t
          ON t.publication_id = p.publication_id
         AND t.is_last
        WHERE (t.status, t.version) IS DISTINCT FROM (p.status, p.version)
          AND (t.id IS NOT NULL OR p.updated_at >= r.since)
        UNION ALL
        SELECT 'publication_move', t.publication_id, p.channel_id, t.id, coalesce(t.before, 'none'),
               coalesce(t.from_status, 'none')
        FROM told t
        JOIN page p USING (publication_id)
        WHERE NOT t.is_first
          AND t.from_status IS DISTINCT FROM t.before
        UNION ALL
        SELECT 'publication_delivery', p.publication_id, p.channel_id, NULL,
               concat_ws(' ', d.status, d.provider_message_id), concat_ws(' ', p.status, p.published_message_id)
        FROM page p
        CROSS JOIN LATERAL (
            SELECT d.status, d.provider_message_id, d.channel_id
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = p.delivery_id
            LIMIT 1
        ) AS d
        WHERE (p.status = 'published') <> (d.status = 'sent')
           OR (p.status = 'published' AND p.published_message_id IS DISTINCT FROM d.provider_message_id)
           OR p.channel_id <> d.channel_id
    )
    SELECT (SELECT count(*) FROM page),
           (SELECT p.publication_id FROM page p ORDER BY p.publication_id DESC LIMIT 1),
           (SELECT count(*) FROM wrong),
           coalesce((
               SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                   'kind', l.kind, 'publication_id', l.publication_id, 'channel_id', l.channel_id,
                   'event_id', l.event_id, 'events', l.told, 'row', l.found
               )) ORDER BY l.publication_id, l.kind)
               FROM (SELECT * FROM wrong w ORDER BY w.publication_id, w.kind LIMIT p_most) AS l
           ), '[]')
$$;
