-- list_bot_actions(workspace_id, limit) -> actions under way in all chats, and those that ran into their timeout within an
-- hour; the oldest first
--
-- For people on call: a chat is its token, and what the chat shows of an action is not returned.
CREATE OR REPLACE FUNCTION list_bot_actions(p_workspace_id uuid, p_limit int)
RETURNS TABLE (
    chat text,
    action_id text,
    action_type text,
    status text,
    created_at timestamptz,
    updated_at timestamptz
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT chat_token(p_workspace_id, a.chat_id), quoted(a.action_id, 80), quoted(a.action_type, 80),
           CASE a.status WHEN 'error' THEN 'timeout' ELSE a.status END, a.created_at, a.updated_at
    FROM (
        SELECT a.*
        FROM bot_actions a
        WHERE a.workspace_id = p_workspace_id
          AND a.status = 'processing'
        UNION ALL
        SELECT a.*
        FROM bot_actions a
        WHERE a.workspace_id = p_workspace_id
          AND a.status <> 'processing'
          AND a.updated_at > clock_timestamp() - interval '1 hour'
          AND a.status = 'error'
          AND a.payload ->> 'error' = 'timeout'
    ) AS a
    ORDER BY a.created_at, a.action_id
    LIMIT p_limit
$$;
