-- chat_messages(workspace_id, chat_id, before, limit) -> the newest messages of a chat before a number, newest first
CREATE OR REPLACE FUNCTION chat_messages(p_workspace_id uuid, p_chat_id text, p_before bigint, p_limit int)
RETURNS TABLE (seq bigint, body jsonb)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT i.seq, message_document(i)
    FROM bot_inbox i
    WHERE i.workspace_id = p_workspace_id
      AND i.chat_id = p_chat_id
      AND i.seq IS NOT NULL
      AND (p_before IS NULL OR i.seq < p_before)
    ORDER BY i.seq DESC
    LIMIT p_limit
$$;
