-- settle_chats(workspace_id, chat_ids) -> those in which there is more to do now
--
-- Gives the chats back: ends their leases and says when each is due again. A statement of its own, after the writes of
-- the turn: an update that is being stored waits for the row of the chat, or was committed before this looks.
--
-- Changes   bot_chats
-- Locks     bot_chats: held by the caller
CREATE OR REPLACE FUNCTION settle_chats(p_workspace_id uuid, p_chat_ids text[])
RETURNS SETOF text
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    RETURN QUERY
    WITH following AS MATERIALIZED (
        SELECT c.chat_id,
               CASE WHEN b.next_attempt_at IS NOT NULL THEN b.next_attempt_at
                    WHEN i.ts IS NOT NULL THEN clock_timestamp() END AS due_at
        FROM unnest(p_chat_ids) AS c (chat_id)
        LEFT JOIN LATERAL (
            SELECT b.next_attempt_at
            FROM bot_outbox b
            WHERE b.workspace_id = p_workspace_id
              AND b.chat_id = c.chat_id
              AND b.sent_at IS NULL
              AND b.failed_at IS NULL
            ORDER BY b.place
            LIMIT 1
        ) AS b ON true
        LEFT JOIN LATERAL (
            SELECT i.ts
            FROM bot_inbox i
            WHERE i.workspace_id = p_workspace_id
              AND i.chat_id = c.chat_id
              AND i.processed_at IS NULL
            LIMIT 1
        ) AS i ON true
    ), settled AS (
        UPDATE bot_chats c
        SET due_at = f.due_at,
            lease_token = NULL,
            lease_until = NULL,
            takes = 0
        FROM following f
        WHERE c.workspace_id = p_workspace_id
          AND c.chat_id = f.chat_id
        RETURNING c.chat_id, c.due_at
    )
    SELECT s.chat_id
    FROM settled s
    WHERE s.due_at <= clock_timestamp();
END $$;
