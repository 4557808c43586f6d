-- verify_queue(workspace_id, after, limit, most) -> rows of delivery_queue and dead_letters without their delivery
--
-- The reverse of verify_deliveries, walked the same way: a row whose delivery is gone, or no longer in the status that
-- the row is for, or whose status differs. Returns {"kind": "queue" | "dead_letters", "delivery_id", "events": null,
-- "row"}.
CREATE OR REPLACE FUNCTION verify_queue(
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
        SELECT k.kind, k.delivery_id, k.status
        FROM (
            (SELECT 'queue' AS kind, q.delivery_id, q.status
             FROM delivery_queue q
             WHERE q.workspace_id = p_workspace_id
               AND q.delivery_id > p_after
             ORDER BY q.delivery_id
             LIMIT p_limit)
            UNION ALL
            (SELECT 'dead_letters', g.delivery_id, g.status
             FROM dead_letters g
             WHERE g.workspace_id = p_workspace_id
               AND g.delivery_id > p_after
             ORDER BY g.delivery_id
             LIMIT p_limit)
        ) AS k
        ORDER BY k.delivery_id
        LIMIT p_limit
    ), wrong AS MATERIALIZED (
        SELECT p.kind, p.delivery_id, coalesce(d.status::text, 'gone') AS found
        FROM page p
        LEFT JOIN LATERAL (
            SELECT d.status
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = p.delivery_id
            LIMIT 1
        ) AS d ON true
        WHERE d.status IS DISTINCT FROM p.status
    )
    SELECT (SELECT count(*) FROM page),
           (SELECT p.delivery_id FROM page p ORDER BY p.delivery_id DESC LIMIT 1),
           (SELECT count(*) FROM wrong),
           coalesce((
               SELECT jsonb_agg(jsonb_build_object(
                   'kind', l.kind, 'delivery_id', l.delivery_id, 'events', NULL, 'row', l.found
               ) ORDER BY l.delivery_id, l.kind)
               FROM (SELECT * FROM wrong w ORDER BY w.delivery_id, w.kind LIMIT p_most) AS l
           ), '[]')
$$;
