-- renew_chats(workspace_id, chat_ids, lease_tokens) -> the chats whose lease was renewed
--
-- Locks     bot_chats by key
CREATE OR REPLACE FUNCTION renew_chats(
    p_workspace_id uuid,
    p_chat_ids text[],
    p_lease_tokens uuid[],
    p_lease interval DEFAULT '30 seconds'
)
RETURNS SETOF text
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _ours bigint[] := lock_chats(array_fill(p_workspace_id, ARRAY[cardinality(p_chat_ids)]), p_chat_ids, p_lease_tokens);
BEGIN
    RETURN QUERY
    UPDATE bot_chats c
    SET lease_until = clock_timestamp() + p_lease
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = ANY (ARRAY(SELECT p_chat_ids[nth] FROM unnest(_ours) AS nth))
    RETURNING c.chat_id;
END $$;
