-- retain_bot_logs(keep, limit) -> how many older lines of conversations are deleted
--
-- Locks     bot_logs by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_bot_logs(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT l.workspace_id, l.id
        FROM workspaces w
        CROSS JOIN LATERAL (
            SELECT l.workspace_id, l.id
            FROM bot_logs l
            WHERE l.workspace_id = w.workspace_id
              AND l.ts < (SELECT clock_timestamp() - p_keep)
            ORDER BY l.ts
            LIMIT p_limit
            FOR UPDATE SKIP LOCKED
        ) AS l
        LIMIT p_limit
    ), gone AS (
        DELETE FROM bot_logs t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.id = o.id
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
