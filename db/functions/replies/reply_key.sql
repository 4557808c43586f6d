-- reply_key(workspace_id, chat_id, key) -> the idempotency key of the reply to this update
--
-- The chat is named by its token, also inside of the update's own key.
CREATE OR REPLACE FUNCTION reply_key(p_workspace_id uuid, p_chat_id text, p_key text)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = public, pg_temp
AS $$
    SELECT format('bot:%s:%s:%s', p_workspace_id, t.token,
                  CASE WHEN p_key LIKE 'start:%' THEN 'start:' || t.token || ':' || split_part(p_key, ':', -1)
                       ELSE p_key END)
    FROM (SELECT chat_token(p_workspace_id, p_chat_id) AS token) AS t
$$;
