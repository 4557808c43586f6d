-- renew_chats(workspace_id, chat_ids, lease_tokens, lease) -> the chats whose lease was renewed
--
-- Locks     bot_chats by key
CREATE OR REPLACE FUNCTION renew_chats(
    p_workspace_id uuid,
    p_chat_ids text[],
    p_lease_tokens uuid[],
    p_lease interval DEFAULT '30 seconds'
)
RETURNS SETOF text
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH ours AS MATERIALIZED (
        SELECT lock_chats(p_workspace_id, p_chat_ids, p_lease_tokens) AS chats
    )
    UPDATE bot_chats c
    SET lease_until = clock_timestamp() + p_lease,
        due_at = clock_timestamp() + p_lease
    FROM ours o
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = ANY (o.chats)
    RETURNING c.chat_id
$$;
