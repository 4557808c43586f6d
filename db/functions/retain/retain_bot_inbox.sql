-- retain_bot_inbox(keep, limit) -> how many updates of customers that were handled longer ago are deleted
--
-- Chats remember up to which number changes were deleted, so that a reader that is further behind reads anew.
--
-- Locks     bot_inbox by key, then bot_chats by key, both SKIP LOCKED: it waits for nobody
CREATE OR REPLACE FUNCTION retain_bot_inbox(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT i.workspace_id, i.provider, i.chat_id, i.provider_message_id, i.seq
        FROM bot_inbox i
        WHERE i.processed_at < (SELECT clock_timestamp() - p_keep)
        ORDER BY i.processed_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ), chats AS MATERIALIZED (
        SELECT c.workspace_id, c.chat_id
        FROM bot_chats c
        JOIN (SELECT DISTINCT o.workspace_id, o.chat_id FROM old o WHERE o.seq IS NOT NULL) AS o
          ON o.workspace_id = c.workspace_id
         AND o.chat_id = c.chat_id
        FOR NO KEY UPDATE OF c SKIP LOCKED
    ), gone AS (
        DELETE FROM bot_inbox t
        USING old o
        LEFT JOIN chats c USING (workspace_id, chat_id)
        WHERE t.workspace_id = o.workspace_id
          AND t.provider = o.provider
          AND t.chat_id = o.chat_id
          AND t.provider_message_id = o.provider_message_id
          AND (o.seq IS NULL OR c.chat_id IS NOT NULL)
        RETURNING t.workspace_id, t.chat_id, t.seq
    ), remembered AS (
        UPDATE bot_chats c
        SET forgotten_seq = greatest(c.forgotten_seq, g.seq)
        FROM (SELECT g.workspace_id, g.chat_id, max(g.seq) AS seq FROM gone g GROUP BY g.workspace_id, g.chat_id) AS g
        WHERE c.workspace_id = g.workspace_id
          AND c.chat_id = g.chat_id
          AND g.seq IS NOT NULL
    )
    SELECT count(*)::int FROM gone
$$;
