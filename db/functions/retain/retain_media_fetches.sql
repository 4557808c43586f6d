-- retain_media_fetches(keep, limit) -> how many fetches that began longer ago are deleted
--
-- Stays     a fetch that names a possibly unregistered object in the store: mark_orphan_objects handles it
-- Locks     media_fetches by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_media_fetches(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT m.workspace_id, m.url_hash
        FROM workspaces w
        CROSS JOIN LATERAL (
            SELECT m.workspace_id, m.url_hash
            FROM media_fetches m
            WHERE m.workspace_id = w.workspace_id
              AND m.started_at < (SELECT clock_timestamp() - p_keep)
              AND m.puts = '{}'
            ORDER BY m.started_at
            LIMIT p_limit
            FOR UPDATE SKIP LOCKED
        ) AS m
        LIMIT p_limit
    ), gone AS (
        DELETE FROM media_fetches t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.url_hash = o.url_hash
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
