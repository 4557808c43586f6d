-- update_action(workspace_id, action) -> {"verdict", "action", "seq"}
--
-- Ends an action. action: {"chat_id", "action_id", "status": "done" | "error", "display_text", "payload"}; a text or
-- payload that is absent stays as it is, null clears it.
--
-- Verdicts  completed  it was under way and has ended
--           changed    it had ended so, and has another text or payload now
--           same       it had ended so: nothing changed
--           ignored    it had ended the other way: the first end stays
--           unknown    there is no such action: nothing is written
-- seq       the number of the chat's last change; only completed and changed take a new one
-- Locks     bot_chats, bot_actions: each by key
CREATE OR REPLACE FUNCTION update_action(p_workspace_id uuid, p_action jsonb)
RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    _chat_id text := p_action ->> 'chat_id';
    _before bot_actions;
    _after bot_actions;
    _seq bigint;
    _verdict text;
BEGIN
    SELECT c.seq
    INTO _seq
    FROM bot_chats c
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = _chat_id
    FOR NO KEY UPDATE;
    -- An action that is created meanwhile must not be locked without its chat: others take the chat first.
    IF NOT FOUND THEN
        RETURN jsonb_build_object('verdict', 'unknown');
    END IF;
    SELECT a.*
    INTO _before
    FROM bot_actions a
    WHERE a.workspace_id = p_workspace_id
      AND a.chat_id = _chat_id
      AND a.action_id = p_action ->> 'action_id'
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('verdict', 'unknown');
    END IF;

    _after := with_given_fields(_before, p_action);
    _after.status := p_action ->> 'status';
    _verdict := CASE
        WHEN _before.status = 'processing' THEN 'completed'
        WHEN _before.status <> _after.status THEN 'ignored'
        WHEN differs(_before, _after) THEN 'changed'
        ELSE 'same'
    END;
    IF _verdict IN ('ignored', 'same') THEN
        RETURN jsonb_build_object('verdict', _verdict, 'action', action_document(_before), 'seq', _seq);
    END IF;

    _seq := advance_chat(p_workspace_id, _chat_id);
    UPDATE bot_actions a
    SET status = _after.status,
        display_text = _after.display_text,
        payload = _after.payload,
        updated_at = clock_timestamp(),
        seq = _seq
    WHERE a.workspace_id = p_workspace_id
      AND a.chat_id = _chat_id
      AND a.action_id = _before.action_id
    RETURNING a.* INTO _after;
    RETURN jsonb_build_object('verdict', _verdict, 'action', action_document(_after), 'seq', _seq);
END $$;
