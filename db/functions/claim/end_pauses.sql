-- end_pauses(workspace_id, run_id, channel_ids, message_ids, now)
--
-- A pause that expires ends like one that an operator ends: with the channel's catch-up policy. The claim does this
-- first. Until then paused_until stays, and no claim takes anything from the channel (ready_channels), so nothing is
-- sent that the policy excludes. With the policy `all` there is nothing to do, and paused_until stays for good.
--
-- Changes   channels.paused_until; what is dropped: see drop_excess
-- Appends   catch_up_dropped per delivery
-- Locks     channels, deliveries: each by key. The caller holds the messages (lock_excess) and then the groups
CREATE OR REPLACE FUNCTION end_pauses(
    p_workspace_id uuid,
    p_run_id uuid,
    p_channel_ids uuid[],
    p_message_ids uuid[],
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _channels uuid[] := ARRAY(
        SELECT c.channel_id
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = ANY (p_channel_ids)
          AND c.enabled
          AND c.paused_until <= p_now
        ORDER BY c.channel_id
        FOR NO KEY UPDATE
    );
BEGIN
    PERFORM drop_excess(p_workspace_id, _channels, p_message_ids, p_run_id, '{"how": "pause_ended"}', p_now);

    -- Last, because it makes the channels due, and channel_due is locked after deliveries everywhere; by key, since an
    -- UPDATE of several channels does not guarantee an order.
    PERFORM 1
    FROM channel_due d
    WHERE d.workspace_id = p_workspace_id
      AND d.channel_id = ANY (_channels)
    ORDER BY d.channel_id
    FOR NO KEY UPDATE;
    UPDATE channels c
    SET paused_until = NULL,
        updated_at = p_now
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = ANY (_channels);
END $$;
