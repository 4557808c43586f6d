-- advance_chat(workspace_id, chat_id, by) -> the number of the last change of the chat, after so many more
--
-- The row is made when it is missing. It stays locked until the transaction ends, so a later number is committed later
-- and a reader that has seen a number misses none before it.
-- changed_at may lag by an hour: it is indexed, and an update that leaves it as it is touches no index.
--
-- Locks     bot_chats by key
CREATE OR REPLACE FUNCTION advance_chat(p_workspace_id uuid, p_chat_id text, p_by int DEFAULT 1)
RETURNS bigint
LANGUAGE sql
AS $$
    INSERT INTO bot_chats AS c (workspace_id, chat_id, seq, changed_at)
    VALUES (p_workspace_id, p_chat_id, p_by, clock_timestamp())
    ON CONFLICT (workspace_id, chat_id) DO UPDATE
    SET seq = c.seq + p_by,
        changed_at = CASE
            WHEN c.changed_at < clock_timestamp() - interval '1 hour' THEN clock_timestamp()
            ELSE c.changed_at
        END
    RETURNING c.seq
$$;
