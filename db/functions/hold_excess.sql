-- hold_excess(workspace_id, channel_ids, now) -> the messages of what these channels' catch-up policies would drop, locked
--
-- Before anything else, because whoever posts the content again in this moment finds the delivery waiting and is
-- deduplicated by it: either that makes it young in time, or it comes after and finds it dropped.
--
-- Locks     messages by content
CREATE OR REPLACE FUNCTION hold_excess(p_workspace_id uuid, p_channel_ids uuid[], p_now timestamptz)
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
