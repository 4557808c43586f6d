-- list_actions(workspace_id, chat_id, limit) -> the actions under way, the newest change first, and the chat's last
-- number
--
-- One statement, so that the number belongs to the list: who reads on from it misses nothing and gets nothing twice.
CREATE OR REPLACE FUNCTION list_actions(p_workspace_id uuid, p_chat_id text, p_limit int)
RETURNS TABLE (actions jsonb, seq bigint)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce((
               SELECT jsonb_agg(a.document ORDER BY a.updated_at DESC, a.action_id)
               FROM (
                   SELECT action_document(a) AS document, a.updated_at, a.action_id
                   FROM bot_actions a
                   WHERE a.workspace_id = p_workspace_id
                     AND a.chat_id = p_chat_id
                     AND a.status = 'processing'
                   ORDER BY a.updated_at DESC
                   LIMIT p_limit
               ) AS a
           ), '[]'),
           coalesce((
               SELECT c.seq
               FROM bot_chats c
               WHERE c.workspace_id = p_workspace_id
                 AND c.chat_id = p_chat_id
           ), 0)
$$;
