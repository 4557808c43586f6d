-- lock_chats(workspace_ids, chat_ids, lease_tokens) -> the numbers of the chats whose lease is the caller's, locked
--
-- The arrays go row by row, of any workspaces; so do the numbers, from 1. A lease whose time is over but that nobody took
-- is still the caller's: nobody else can have written.
--
-- Locks     bot_chats, by key
CREATE OR REPLACE FUNCTION lock_chats(p_workspace_ids uuid[], p_chat_ids text[], p_lease_tokens uuid[])
RETURNS bigint[]
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(array_agg(g.nth), '{}')
    FROM (
        SELECT *
        FROM unnest(p_workspace_ids, p_chat_ids, p_lease_tokens) WITH ORDINALITY
            AS g (workspace_id, chat_id, lease_token, nth)
        ORDER BY g.workspace_id, g.chat_id
    ) AS g
    CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
        SELECT
        FROM bot_chats c
        WHERE c.workspace_id = g.workspace_id
          AND c.chat_id = g.chat_id
          AND c.lease_token = g.lease_token
        FOR NO KEY UPDATE
    ) AS c
$$;
