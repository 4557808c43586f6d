-- retain_bot_actions(keep, limit) -> how many actions that ended longer ago are deleted
--
-- Chats remember up to which number changes were deleted, so that a reader that is further behind reads anew.
--
-- Locks     bot_actions by key, then bot_chats by key, both SKIP LOCKED: it waits for nobody
CREATE OR REPLACE FUNCTION retain_bot_actions(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT a.workspace_id, a.chat_id, a.action_id
        FROM bot_actions a
        WHERE a.status <> 'processing'
          AND a.updated_at < (SELECT clock_timestamp() - p_keep)
        ORDER BY a.updated_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ), chats AS MATERIALIZED (
        SELECT c.workspace_id, c.chat_id
        FROM bot_chats c
        JOIN (SELECT DISTINCT o.workspace_id, o.chat_id FROM old o) AS o
          ON o.workspace_id = c.workspace_id
         AND o.chat_id = c.chat_id
        FOR NO KEY UPDATE OF c SKIP LOCKED
    ), gone AS (
        DELETE FROM bot_actions t
        USING old o
        JOIN chats c USING (workspace_id, chat_id)
        WHERE t.workspace_id = o.workspace_id
          AND t.chat_id = o.chat_id
          AND t.action_id = o.action_id
        RETURNING t.workspace_id, t.chat_id, t.seq
    ), remembered AS (
        UPDATE bot_chats c
        SET forgotten_seq = greatest(c.forgotten_seq, g.seq)
        FROM (SELECT g.workspace_id, g.chat_id, max(g.seq) AS seq FROM gone g GROUP BY g.workspace_id, g.chat_id) AS g
        WHERE c.workspace_id = g.workspace_id
          AND c.chat_id = g.chat_id
    )
    SELECT count(*)::int FROM gone
$$;
