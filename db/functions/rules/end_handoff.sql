-- end_handoff(workspace_id, chat, operator, reason) -> verdict
--
-- Gives a chat that was handed to an operator back to the bot.
--
-- chat      the token of the chat
-- Verdicts  released, not_held, not_found
-- Changes   bot_state; bot_logs gets a line, so that the chain of states stays whole
-- Appends   config_changed
-- Locks     bot_chats, bot_state by key
-- Raises    AP010 without operator or reason
CREATE OR REPLACE FUNCTION end_handoff(p_workspace_id uuid, p_chat text, p_operator text, p_reason text)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _chat_id text;
    _now timestamptz;
BEGIN
    SELECT s.chat_id
    INTO _chat_id
    FROM bot_state s
    WHERE s.workspace_id = p_workspace_id
      AND s.state = 'operator'
      AND chat_token(p_workspace_id, s.chat_id) = p_chat;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (
            SELECT 1
            FROM bot_chats c
            WHERE c.workspace_id = p_workspace_id
              AND chat_token(p_workspace_id, c.chat_id) = p_chat
        ) THEN 'not_held' ELSE 'not_found' END;
    END IF;
    PERFORM 1
    FROM bot_chats c
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = _chat_id
    FOR NO KEY UPDATE;
    _now := clock_timestamp();
    UPDATE bot_state s
    SET state = 'default',
        context = '{"turns": 0}',
        expires_at = NULL,
        updated_at = _now
    WHERE s.workspace_id = p_workspace_id
      AND s.chat_id = _chat_id
      AND s.state = 'operator';
    IF NOT FOUND THEN
        RETURN 'not_held';
    END IF;
    INSERT INTO bot_logs (workspace_id, ts, chat_id, message_text, state_before, state_after, meta)
    VALUES (p_workspace_id, _now, _chat_id, '', 'operator', 'default', '{"outcome": "released"}');
    INSERT INTO events (workspace_id, action, meta)
    VALUES (p_workspace_id, 'config_changed', event_meta(NULL, NULL, _signature || jsonb_build_object(
        'what', 'bot_state.state', 'chat', p_chat, 'was', 'operator', 'is', 'default')));
    RETURN 'released';
END $$;
