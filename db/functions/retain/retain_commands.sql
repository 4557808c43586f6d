-- retain_commands(keep, limit) -> how many commands that were published longer ago are deleted
--
-- Locks     command_outbox by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_commands(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT c.workspace_id, c.command_id
        FROM command_outbox c
        WHERE c.published_at < (SELECT clock_timestamp() - p_keep)
        ORDER BY c.published_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM command_outbox t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.command_id = o.command_id
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
