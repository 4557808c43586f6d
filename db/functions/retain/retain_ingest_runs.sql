-- retain_ingest_runs(keep, limit) -> how many runs that began longer ago are deleted
--
-- Stays     a run of which a post still waits for its media, however long its workspace has been paused
-- Locks     ingest_runs by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_ingest_runs(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT r.workspace_id, r.run_id
        FROM ingest_runs r
        WHERE r.started_at < (SELECT clock_timestamp() - p_keep)
          AND NOT EXISTS (
              SELECT 1
              FROM (
                  SELECT s.workspace_id, s.status
                  FROM staged_posts s
                  WHERE s.run_id = r.run_id
                  OFFSET 0
              ) AS s
              WHERE s.workspace_id = r.workspace_id
                AND s.status IN ('staged', 'fetching')
          )
        ORDER BY r.started_at
        LIMIT p_limit
        FOR UPDATE OF r SKIP LOCKED
    ), gone AS (
        DELETE FROM ingest_runs t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.run_id = o.run_id
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
