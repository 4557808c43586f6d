-- record_reply_part(workspace_id, chat_id, lease_token, part, provider_ids) -> whether it was recorded
--
-- A part of a longer reply was accepted: it is recorded before the next one is sent, so it is never sent again. Not
-- recorded when the lease passed on, or when the part is not the next one.
--
-- Locks     bot_chats, bot_outbox, by key
CREATE OR REPLACE FUNCTION record_reply_part(
    p_workspace_id uuid,
    p_chat_id text,
    p_lease_token uuid,
    p_part int,
    p_provider_ids text[]
)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _reply record;
BEGIN
    IF lock_chats(ARRAY[p_workspace_id], ARRAY[p_chat_id], ARRAY[p_lease_token]) = '{}' THEN
        RETURN false;
    END IF;
    SELECT b.inbound_provider_message_id AS key, b.response -> 'progress' AS progress
    INTO _reply
    FROM bot_outbox b
    WHERE b.workspace_id = p_workspace_id
      AND b.chat_id = p_chat_id
      AND b.sent_at IS NULL
      AND b.failed_at IS NULL
    ORDER BY b.place
    LIMIT 1;
    IF NOT FOUND OR jsonb_array_length(_reply.progress) < p_part THEN
        RETURN false;
    END IF;
    UPDATE bot_outbox b
    SET response = b.response || jsonb_build_object('progress', _reply.progress || jsonb_build_array(to_jsonb(p_provider_ids)))
    WHERE b.workspace_id = p_workspace_id
      AND b.chat_id = p_chat_id
      AND b.inbound_provider_message_id = _reply.key
      AND jsonb_array_length(_reply.progress) = p_part;
    RETURN true;
END $$;
