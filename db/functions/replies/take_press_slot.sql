-- take_press_slot(workspace_id, chat_id, patience) -> slot_at, wait, taken
--
-- The slot of the call that ends the waiting of a pressed button. It belongs to no reply and needs no lease; the platform
-- counts it for the token and for the chat. Not taken: nothing is charged, and the call is not made.
--
-- Changes   platform_limits, bot_chats.next_allowed_at
-- Locks     platform_limits, bot_chats: in that order, each by key
CREATE OR REPLACE FUNCTION take_press_slot(p_workspace_id uuid, p_chat_id text, p_patience interval)
RETURNS TABLE (slot_at timestamptz, wait interval, taken boolean)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _bot record;
    _gate timestamptz;
    _now timestamptz;
    _slot timestamptz;
    _open boolean;
BEGIN
    SELECT s.provider, s.rate_group, rate_step(s.chat_rps) AS chat_step, rate_step(g.rate_rps) AS step,
           g.next_allowed_at, w.status = 'active' AND claimable_at(g.circuit, g.stalled_until) <= clock_timestamp() AS is_on
    INTO _bot
    FROM bot_settings s
    JOIN workspaces w USING (workspace_id)
    JOIN platform_limits g
      ON g.workspace_id = s.workspace_id
     AND g.platform = s.provider
     AND g.rate_group = s.rate_group
    WHERE s.workspace_id = p_workspace_id
    FOR UPDATE OF g;
    SELECT c.next_allowed_at
    INTO _gate
    FROM bot_chats c
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = p_chat_id
    FOR NO KEY UPDATE;
    _now := clock_timestamp();
    _slot := greatest(_now, _bot.next_allowed_at, _gate);
    _open := coalesce(_gate <= greatest(_now, _bot.next_allowed_at), true);
    IF NOT (_bot.is_on AND _open AND _slot <= _now + p_patience) THEN
        RETURN QUERY SELECT _slot, _slot - _now + CASE WHEN _bot.is_on THEN interval '0' ELSE interval '1 minute' END, false;
        RETURN;
    END IF;
    UPDATE platform_limits g
    SET next_allowed_at = _slot + _bot.step,
        updated_at = _now
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = _bot.provider
      AND g.rate_group = _bot.rate_group
      AND _bot.step > interval '0';
    UPDATE bot_chats c
    SET next_allowed_at = _slot + _bot.chat_step
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = p_chat_id;
    RETURN QUERY SELECT _slot, _slot - _now, true;
END $$;
