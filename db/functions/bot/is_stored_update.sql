-- is_stored_update(workspace_id, chat_id, update) -> whether the inbox has this update of store_bot_update
CREATE OR REPLACE FUNCTION is_stored_update(p_workspace_id uuid, p_chat_id text, p_update jsonb)
RETURNS boolean
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT EXISTS (
        SELECT 1
        FROM bot_inbox i
        WHERE i.workspace_id = p_workspace_id
          AND i.provider = p_update ->> 'provider'
          AND i.chat_id = p_chat_id
          AND i.provider_message_id = p_update ->> 'key'
    )
$$;
