-- dialog_of(workspace_id, chat_id) -> the chat that an update belongs to
--
-- A press on a button whose message is gone names no chat, only a person: user:<number>. It belongs to the dialog with
-- that person, or there would be two conversations with one customer. Until a dialog is known, user:<number> is the chat.
CREATE OR REPLACE FUNCTION dialog_of(p_workspace_id uuid, p_chat_id text)
RETURNS text
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce((
        SELECT c.chat_id
        FROM bot_chats c
        WHERE p_chat_id LIKE 'user:%'
          AND c.workspace_id = p_workspace_id
          AND c.user_id = substr(p_chat_id, 6)
          AND c.chat_type = 'dialog'
          AND c.chat_id NOT LIKE 'user:%'
        ORDER BY c.changed_at DESC
        LIMIT 1
    ), p_chat_id)
$$;
