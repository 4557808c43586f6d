-- end_upload(workspace_id, channel_id, now)
--
-- A call that carried media has ended now. The platform counts it when its last byte has arrived, so the next call of
-- the channel keeps its distance from this end, not from the slot in which the call began. In the rate group it counts
-- as one more call at this time: its own slot is long past.
--
-- Changes      channels.next_allowed_at, platform_limits.next_allowed_at: later only
-- Locks        platform_limits, channels: in that order
CREATE OR REPLACE FUNCTION end_upload(p_workspace_id uuid, p_channel_id uuid, p_now timestamptz DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _channel record;
    _now timestamptz;
BEGIN
    SELECT c.platform, c.rate_group
    INTO _channel
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = p_channel_id;

    PERFORM 1
    FROM platform_limits g
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = _channel.platform
      AND g.rate_group = _channel.rate_group
    FOR UPDATE;
    _now := coalesce(p_now, clock_timestamp());
    UPDATE platform_limits g
    SET next_allowed_at = greatest(g.next_allowed_at, _now) + rate_step(g.rate_rps),
        updated_at = _now
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = _channel.platform
      AND g.rate_group = _channel.rate_group
      AND rate_step(g.rate_rps) > interval '0';
    UPDATE channels c
    SET next_allowed_at = greatest(c.next_allowed_at, _now + rate_step(c.rate_rps))
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = p_channel_id
      AND rate_step(c.rate_rps) > interval '0';
END $$;
