-- lock_chats(workspace_id, chat_ids, lease_tokens) -> the chats whose lease is the caller's, locked
--
-- A lease whose time is over but that nobody took is still the caller's: nobody else can have written.
--
-- Locks     bot_chats, by key
CREATE OR REPLACE FUNCTION lock_chats(p_workspace_id uuid, p_chat_ids text[], p_lease_tokens uuid[])
RETURNS text[]
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(array_agg(c.chat_id), '{}')
    FROM (
        SELECT *
        FROM unnest(p_chat_ids, p_lease_tokens) AS g (chat_id, lease_token)
        ORDER BY g.chat_id
    ) AS g
    CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
        SELECT c.chat_id
        FROM bot_chats c
        WHERE c.workspace_id = p_workspace_id
          AND c.chat_id = g.chat_id
          AND c.lease_token = g.lease_token
        FOR NO KEY UPDATE
    ) AS c
$$;
