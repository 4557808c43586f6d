-- lock_excess(workspace_id, channel_ids, now)
-- -> the messages of the deliveries that the catch-up policies of these channels drop, locked
--
-- Called before all other locks of a claim. An enqueue of the same content either comes before this lock, and keeps the
-- delivery by making it recent, or comes after it, and finds the delivery dropped.
--
-- Locks     messages by content
CREATE OR REPLACE FUNCTION lock_excess(p_workspace_id uuid, p_channel_ids uuid[], p_now timestamptz)
RETURNS uuid[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    RETURN ARRAY(
        SELECT m.message_id
        FROM messages m
        WHERE m.workspace_id = p_workspace_id
          AND m.message_id IN (SELECT x.message_id FROM catch_up_excess(p_workspace_id, p_channel_ids, p_now) AS x)
        ORDER BY m.hash_version, m.content_hash
        FOR NO KEY UPDATE
    );
END $$;
