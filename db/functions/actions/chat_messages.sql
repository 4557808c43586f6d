-- chat_messages(workspace_id, chat_id, after, before, limit) -> messages of a chat, of both sides, by their numbers
--
-- With after: what came after that number, oldest first. Otherwise the newest ones, before a number if it is given,
-- newest first.
CREATE OR REPLACE FUNCTION chat_messages(
    p_workspace_id uuid,
    p_chat_id text,
    p_after bigint,
    p_before bigint,
    p_limit int
)
RETURNS TABLE (seq bigint, body jsonb)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _end bigint := coalesce(p_before, 9223372036854775807);
BEGIN
    IF p_after IS NOT NULL THEN
        RETURN QUERY
        (SELECT i.seq, message_document(i)
         FROM bot_inbox i
         WHERE i.workspace_id = p_workspace_id
           AND i.chat_id = p_chat_id
           AND i.seq > p_after
         ORDER BY i.seq
         LIMIT p_limit)
        UNION ALL
        (SELECT b.seq, reply_document(b)
         FROM bot_outbox b
         WHERE b.workspace_id = p_workspace_id
           AND b.chat_id = p_chat_id
           AND b.seq > p_after
         ORDER BY b.seq
         LIMIT p_limit)
        ORDER BY 1
        LIMIT p_limit;
    ELSE
        RETURN QUERY
        (SELECT i.seq, message_document(i)
         FROM bot_inbox i
         WHERE i.workspace_id = p_workspace_id
           AND i.chat_id = p_chat_id
           AND i.seq < _end
         ORDER BY i.seq DESC
         LIMIT p_limit)
        UNION ALL
        (SELECT b.seq, reply_document(b)
         FROM bot_outbox b
         WHERE b.workspace_id = p_workspace_id
           AND b.chat_id = p_chat_id
           AND b.seq < _end
         ORDER BY b.seq DESC
         LIMIT p_limit)
        ORDER BY 1 DESC
        LIMIT p_limit;
    END IF;
END $$;
