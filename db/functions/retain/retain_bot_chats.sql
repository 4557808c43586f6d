-- retain_bot_chats(keep, limit) -> how many chats in which nothing is left and nothing changed since then are deleted
--
-- Locks     bot_chats by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_bot_chats(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT c.workspace_id, c.chat_id
        FROM bot_chats c
        WHERE c.changed_at < (SELECT clock_timestamp() - p_keep)
          AND c.due_at IS NULL
          AND NOT EXISTS (
              SELECT 1
              FROM bot_outbox b
              WHERE b.workspace_id = c.workspace_id
                AND b.chat_id = c.chat_id
          )
          AND NOT EXISTS (
              SELECT 1
              FROM bot_inbox i
              WHERE i.workspace_id = c.workspace_id
                AND i.chat_id = c.chat_id
                AND i.seq IS NOT NULL
          )
          AND NOT EXISTS (
              SELECT 1
              FROM bot_actions a
              WHERE a.workspace_id = c.workspace_id
                AND a.chat_id = c.chat_id
          )
        ORDER BY c.changed_at
        LIMIT p_limit
        FOR UPDATE OF c SKIP LOCKED
    ), gone AS (
        DELETE FROM bot_chats t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.chat_id = o.chat_id
          AND t.changed_at < (SELECT clock_timestamp() - p_keep)
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
