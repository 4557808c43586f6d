-- end_pauses(workspace_id, run_id, now)
--
-- A pause that ran out ends like one that somebody has ended: with the channel's catch-up policy. The claim does this
-- first. Until then paused_until stays, and no claim takes anything from the channel (ready_channels), so nothing goes out
-- that the policy leaves out. With the policy `all` there is nothing to do, and paused_until stays for good.
--
-- Changes   channels.paused_until; what is dropped: see drop_excess
-- Appends   catch_up_dropped per delivery
-- Locks     messages of what may be dropped, platform_limits, channels, deliveries: each by key
CREATE OR REPLACE FUNCTION end_pauses(p_workspace_id uuid, p_run_id uuid, p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _channels uuid[] := ARRAY(
        SELECT c.channel_id
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND c.enabled
          AND c.paused_until <= p_now
          AND c.catch_up ->> 'policy' <> 'all'
    );
    _messages uuid[] := hold_excess(p_workspace_id, _channels, p_now);
BEGIN
    PERFORM 1
    FROM platform_limits g
    WHERE g.workspace_id = p_workspace_id
    ORDER BY g.platform, g.rate_group
    FOR UPDATE;

    _channels := ARRAY(
        SELECT c.channel_id
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = ANY (_channels)
          AND c.enabled
          AND c.paused_until <= p_now
        ORDER BY c.channel_id
        FOR NO KEY UPDATE
    );
    PERFORM drop_excess(p_workspace_id, _channels, _messages, p_run_id, '{"how": "pause_ended"}', p_now);

    -- Last, because it makes the channels due, and channel_due is locked after deliveries everywhere.
    UPDATE channels c
    SET paused_until = NULL,
        updated_at = p_now
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = ANY (_channels);
END $$;
