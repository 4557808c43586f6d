-- release_chats(workspace_id, chat_ids, lease_tokens) -> how many were given back
--
-- For a worker that stops: what it took and has not decided is due again at once, and the take does not count. A reply
-- whose attempt has begun is none of these: see commit_replies, result released.
--
-- Locks     bot_chats by key
CREATE OR REPLACE FUNCTION release_chats(p_workspace_id uuid, p_chat_ids text[], p_lease_tokens uuid[])
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _ours bigint[] := lock_chats(array_fill(p_workspace_id, ARRAY[cardinality(p_chat_ids)]), p_chat_ids, p_lease_tokens);
BEGIN
    UPDATE bot_chats c
    SET due_at = clock_timestamp(),
        lease_token = NULL,
        lease_until = NULL,
        takes = greatest(c.takes - 1, 0)
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = ANY (ARRAY(SELECT p_chat_ids[nth] FROM unnest(_ours) AS nth));
    RETURN cardinality(_ours);
END $$;
