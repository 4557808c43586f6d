-- list_bot_chats(workspace_id, limit) -> chats in which something waits, the longest waiting first
--
-- status    waiting   an update is not answered, or a reply is not sent
--           held      an operator has the chat until `until`
--           stopped   the customer stopped the bot
-- reply_id  of the reply that waits, with its error
CREATE OR REPLACE FUNCTION list_bot_chats(p_workspace_id uuid, p_limit int)
RETURNS TABLE (
    chat text,
    status text,
    since timestamptz,
    until timestamptz,
    updates bigint,
    reply_id uuid,
    attempt int,
    code text
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT chat_token(p_workspace_id, c.chat_id),
           CASE WHEN c.due_at IS NOT NULL OR c.lease_token IS NOT NULL THEN 'waiting'
                WHEN c.stopped_at IS NOT NULL THEN 'stopped'
                ELSE 'held' END,
           coalesce(least(b.created_at, i.oldest), c.stopped_at, s.updated_at),
           CASE WHEN s.state = 'operator' THEN s.expires_at END, i.updates, b.reply_id, b.attempt, b.last_error ->> 'code'
    FROM bot_chats c
    LEFT JOIN bot_state s USING (workspace_id, chat_id)
    LEFT JOIN LATERAL (
        SELECT b.created_at, b.reply_id, b.attempt, b.last_error
        FROM bot_outbox b
        WHERE b.workspace_id = p_workspace_id
          AND b.chat_id = c.chat_id
          AND b.sent_at IS NULL
          AND b.failed_at IS NULL
        ORDER BY b.place
        LIMIT 1
    ) AS b ON true
    CROSS JOIN LATERAL (
        SELECT count(*) AS updates, min(i.ts) AS oldest
        FROM bot_inbox i
        WHERE i.workspace_id = p_workspace_id
          AND i.chat_id = c.chat_id
          AND i.processed_at IS NULL
    ) AS i
    WHERE c.workspace_id = p_workspace_id
      AND (c.due_at IS NOT NULL OR c.lease_token IS NOT NULL OR c.stopped_at IS NOT NULL
           OR s.state = 'operator' AND s.expires_at >= clock_timestamp())
    ORDER BY 3, 1
    LIMIT p_limit
$$;
