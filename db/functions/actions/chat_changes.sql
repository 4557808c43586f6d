-- chat_changes(workspace_id, chat_id, after, limit) -> what changed in a chat after a number, in the order of numbers
--
-- kind     message     a message of the customer, or a reply of the bot that was sent
--          bot_action  an action as it is now; one that changed several times comes once, with its last number
--          resync      the only row, with the chat's last number: more than the limit has changed, the number is none
--                      of this chat, or retention deleted changes after it. The reader has to read the chat anew.
CREATE OR REPLACE FUNCTION chat_changes(p_workspace_id uuid, p_chat_id text, p_after bigint, p_limit int)
RETURNS TABLE (seq bigint, kind text, body jsonb, at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH head AS MATERIALIZED (
        SELECT coalesce(max(c.seq), 0) AS seq,
               p_after > coalesce(max(c.seq), 0) OR p_after < coalesce(max(c.forgotten_seq), 0) AS lost
        FROM bot_chats c
        WHERE c.workspace_id = p_workspace_id
          AND c.chat_id = p_chat_id
    ), changed AS MATERIALIZED (
        (
            SELECT i.seq, 'message' AS kind, message_document(i) AS body, i.ts AS at
            FROM bot_inbox i
            WHERE i.workspace_id = p_workspace_id
              AND i.chat_id = p_chat_id
              AND i.seq > p_after
            ORDER BY i.seq
            LIMIT p_limit + 1
        )
        UNION ALL
        (
            SELECT b.seq, 'message', reply_document(b), b.sent_at
            FROM bot_outbox b
            WHERE b.workspace_id = p_workspace_id
              AND b.chat_id = p_chat_id
              AND b.seq > p_after
            ORDER BY b.seq
            LIMIT p_limit + 1
        )
        UNION ALL
        (
            SELECT a.seq, 'bot_action', action_document(a), a.updated_at
            FROM bot_actions a
            WHERE a.workspace_id = p_workspace_id
              AND a.chat_id = p_chat_id
              AND a.seq > p_after
              AND a.seq > 0
            ORDER BY a.seq
            LIMIT p_limit + 1
        )
    ), judged AS MATERIALIZED (
        SELECT h.seq, h.lost OR (SELECT count(*) FROM changed) > p_limit AS resync
        FROM head h
    )
    SELECT j.seq, 'resync', NULL::jsonb, NULL::timestamptz
    FROM judged j
    WHERE j.resync
    UNION ALL
    (
        SELECT c.seq, c.kind, c.body, c.at
        FROM changed c
        JOIN judged j ON NOT j.resync
        ORDER BY c.seq
    )
$$;
