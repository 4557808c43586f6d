-- retain_pull_receipts(keep, limit) -> how many receipts of disabled sources are deleted
--
-- An enabled source keeps all of them, or its feed would bring again what was posted. A disabled one keeps them for
-- that long after its last pull.
--
-- Locks     pull_sources, pull_receipts, each SKIP LOCKED: so no source is enabled meanwhile
CREATE OR REPLACE FUNCTION retain_pull_receipts(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT r.workspace_id, r.source_id, r.source_ref
        FROM (
            SELECT s.workspace_id, s.source_id
            FROM pull_sources s
            WHERE NOT s.enabled
              AND coalesce(s.pulled_at, s.created_at) < clock_timestamp() - p_keep
            FOR SHARE SKIP LOCKED
        ) AS s
        CROSS JOIN LATERAL (
            SELECT r.workspace_id, r.source_id, r.source_ref
            FROM pull_receipts r
            WHERE r.workspace_id = s.workspace_id
              AND r.source_id = s.source_id
            LIMIT p_limit
            FOR UPDATE SKIP LOCKED
        ) AS r
        LIMIT p_limit
    ), gone AS (
        DELETE FROM pull_receipts t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.source_id = o.source_id
          AND t.source_ref = o.source_ref
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
