-- retain_staged_posts(keep, limit) -> how many staged posts that ended longer ago are deleted
--
-- Locks     staged_posts by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_staged_posts(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT s.workspace_id, s.post_id
        FROM staged_posts s
        WHERE s.finished_at < (SELECT clock_timestamp() - p_keep)
          AND s.status IN ('enqueued', 'failed')
        ORDER BY s.finished_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM staged_posts t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.post_id = o.post_id
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
