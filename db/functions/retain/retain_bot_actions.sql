-- retain_bot_actions(keep, limit) -> how many actions that ended longer ago are deleted
--
-- Locks     bot_actions by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_bot_actions(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT a.workspace_id, a.chat_id, a.action_id
        FROM bot_actions a
        WHERE a.status <> 'processing'
          AND a.updated_at < (SELECT clock_timestamp() - p_keep)
        ORDER BY a.updated_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM bot_actions t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.chat_id = o.chat_id
          AND t.action_id = o.action_id
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
