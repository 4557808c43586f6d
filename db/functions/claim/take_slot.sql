-- take_slot(workspace_id, delivery_id, claim_token, …, beside, missed)
-- -> slot_at, taken; no row when the delivery is not the caller's to send
--
-- A claim takes the slot of a delivery's first call. For each later call, and for one that missed its slot, the sender
-- calls this when the call is next. So every call has its slot at its own time, on both levels. Charged at the claim,
-- the later calls of long plans coincided with the first calls of those claimed meanwhile: 41 in one second of a group
-- of 27, after a stop.
--
-- taken        the slot is this call's
-- not taken    nothing is charged, call again then: the channel opens later than its group does, and the group's slots
--              until then belong to others; or slot_at is further away than patience (a cooldown), and the caller gives
--              the delivery back. So does everything in hand of a group whose circuit is open, except the trial
-- no row       the token is not the current one: the claim passed on, and nothing more may be sent
-- beside       a call with the token that adds nothing to the chat (an upload, a query): the channel's own rate is
--              neither waited for nor charged
-- missed       the slot that this call had and did not use because its worker was delayed: unless another call took a
--              later one in the channel, the channel is as open as it was for that slot
-- Changes      channels.next_allowed_at, platform_limits.next_allowed_at
-- Locks        platform_limits, channels: in that order
CREATE OR REPLACE FUNCTION take_slot(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_claim_token uuid,
    p_patience interval DEFAULT '5 seconds',
    p_now timestamptz DEFAULT NULL,
    p_beside boolean DEFAULT false,
    p_missed timestamptz DEFAULT NULL
)
RETURNS TABLE (slot_at timestamptz, taken boolean)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _channel record;
    _group_gate timestamptz;
    _group_step interval;
    _gate timestamptz;
    _step interval;
    _now timestamptz;
    _slot timestamptz;
    _taken boolean;
    _is_away boolean;
BEGIN
    SELECT c.channel_id, c.platform, c.rate_group
    INTO _channel
    FROM deliveries d
    JOIN channels c
      ON c.workspace_id = d.workspace_id
     AND c.channel_id = d.channel_id
    WHERE d.workspace_id = p_workspace_id
      AND d.delivery_id = p_delivery_id
      AND d.claim_token = p_claim_token
      AND d.status = 'sending';
    IF NOT FOUND THEN
        RETURN;
    END IF;

    SELECT g.next_allowed_at, rate_step(g.rate_rps), g.circuit <> 'closed' AND g.trial IS DISTINCT FROM p_delivery_id
    INTO _group_gate, _group_step, _is_away
    FROM platform_limits g
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = _channel.platform
      AND g.rate_group = _channel.rate_group
    FOR UPDATE;
    IF _is_away THEN
        _now := coalesce(p_now, clock_timestamp());
        RETURN QUERY SELECT _now + p_patience + interval '1 minute', false;
        RETURN;
    END IF;
    SELECT c.next_allowed_at, rate_step(c.rate_rps)
    INTO _gate, _step
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = _channel.channel_id
    FOR NO KEY UPDATE;

    IF p_beside THEN
        _gate := NULL;
        _step := NULL;
    ELSIF _gate = p_missed + _step THEN
        _gate := p_missed;
    END IF;

    _now := coalesce(p_now, clock_timestamp());
    _slot := greatest(_now, _group_gate, _gate);
    _taken := _slot <= _now + p_patience
              AND (_gate IS NULL OR _gate <= greatest(_now, _group_gate));
    IF _taken AND _step > interval '0' THEN
        UPDATE channels c
        SET next_allowed_at = _slot + _step
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = _channel.channel_id;
    END IF;
    IF _taken AND _group_step > interval '0' THEN
        UPDATE platform_limits g
        SET next_allowed_at = _slot + _group_step,
            updated_at = _now
        WHERE g.workspace_id = p_workspace_id
          AND g.platform = _channel.platform
          AND g.rate_group = _channel.rate_group;
    END IF;
    RETURN QUERY SELECT _slot, _taken;
END $$;
