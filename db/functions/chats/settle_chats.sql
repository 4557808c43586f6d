-- settle_chats(workspace_ids, chat_ids) -> the numbers of those in which there is more to do now
--
-- Gives chats back: ends their leases and says when each is due again. The arrays go row by row, of any workspaces, and
-- the numbers count their rows from 1; a null chat is passed over. A statement of its own, after the writes of the turn:
-- an update that is being stored waits for the row of the chat, or was committed before this looks.
--
-- Changes   bot_chats
-- Locks     bot_chats: held by the caller
CREATE OR REPLACE FUNCTION settle_chats(p_workspace_ids uuid[], p_chat_ids text[])
RETURNS bigint[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _more bigint[];
BEGIN
    WITH following AS MATERIALIZED (
        SELECT c.nth, h.row_place,
               CASE WHEN b.next_attempt_at IS NOT NULL THEN b.next_attempt_at
                    WHEN i.ts IS NOT NULL THEN clock_timestamp() END AS due_at
        FROM unnest(p_workspace_ids, p_chat_ids) WITH ORDINALITY AS c (workspace_id, chat_id, nth)
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT h.ctid AS row_place
            FROM bot_chats h
            WHERE h.workspace_id = c.workspace_id
              AND h.chat_id = c.chat_id
            OFFSET 0
        ) AS h
        LEFT JOIN LATERAL (
            SELECT b.next_attempt_at
            FROM bot_outbox b
            WHERE b.workspace_id = c.workspace_id
              AND b.chat_id = c.chat_id
              AND b.sent_at IS NULL
              AND b.failed_at IS NULL
            ORDER BY b.place
            LIMIT 1
        ) AS b ON true
        LEFT JOIN LATERAL (
            SELECT i.ts
            FROM bot_inbox i
            WHERE i.workspace_id = c.workspace_id
              AND i.chat_id = c.chat_id
              AND i.processed_at IS NULL
            ORDER BY i.provider_ts, i.provider_seq, i.ts -- as the index has them
            LIMIT 1
        ) AS i ON true
        WHERE c.chat_id IS NOT NULL
    ), settled AS (
        UPDATE bot_chats c
        SET due_at = f.due_at,
            lease_token = NULL,
            lease_until = NULL,
            takes = 0
        FROM following f
        WHERE c.ctid = f.row_place
        RETURNING f.nth, c.due_at
    )
    SELECT coalesce(array_agg(s.nth), '{}') INTO _more FROM settled s WHERE s.due_at <= clock_timestamp();
    RETURN _more;
END $$;
