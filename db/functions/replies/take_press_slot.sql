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
    _now timestamptz;
    _call record;
BEGIN
    PERFORM lock_reply_groups(ARRAY[p_workspace_id]);
    PERFORM 1 FROM bot_chats c WHERE c.workspace_id = p_workspace_id AND c.chat_id = p_chat_id FOR NO KEY UPDATE;
    _now := clock_timestamp();
    _call := assign_reply_slots(ARRAY[p_workspace_id], ARRAY[p_chat_id], ARRAY[NULL]::uuid[], ARRAY[false],
                                ARRAY[NULL]::timestamptz[], '{}', p_patience, _now);
    UPDATE bot_chats c
    SET next_allowed_at = _call.gates[1]
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = p_chat_id
      AND _call.taken[1];
    RETURN QUERY
    SELECT s.at, s.at - _now, _call.taken[1]
    FROM (SELECT coalesce(_call.slots[1], _now + interval '1 minute') AS at) AS s;
END $$;
