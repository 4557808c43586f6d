-- start_action(workspace_id, action) -> {"verdict", "action", "seq"}
--
-- Starts a long-running action of a bot, or repeats a start. action: {"chat_id", "action_id", "action_type",
-- "display_text", "payload"}; a text or payload that is absent stays as it is, null clears it.
--
-- Verdicts  created    it did not exist
--           refreshed  it is under way: only its time moved
--           changed    it is under way and has another text or payload now
--           finished   it has ended: nothing changed, no way back
-- seq       the number of the chat's last change; only created and changed take a new one
-- Locks     bot_chats, bot_actions: each by key
CREATE OR REPLACE FUNCTION start_action(p_workspace_id uuid, p_action jsonb)
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
    IF NOT FOUND THEN
        _seq := advance_chat(p_workspace_id, _chat_id, 0);
    END IF;
    SELECT a.*
    INTO _before
    FROM bot_actions a
    WHERE a.workspace_id = p_workspace_id
      AND a.chat_id = _chat_id
      AND a.action_id = p_action ->> 'action_id'
    FOR NO KEY UPDATE;

    IF _before.status <> 'processing' THEN
        RETURN jsonb_build_object('verdict', 'finished', 'action', action_document(_before), 'seq', _seq);
    END IF;

    _after := with_given_fields(_before, p_action);
    _verdict := CASE
        WHEN _before.action_id IS NULL THEN 'created'
        WHEN differs(_before, _after) THEN 'changed'
        ELSE 'refreshed'
    END;
    IF _verdict <> 'refreshed' THEN
        _seq := advance_chat(p_workspace_id, _chat_id);
        _after.seq := _seq;
    END IF;

    INSERT INTO bot_actions AS a (workspace_id, chat_id, action_id, action_type, display_text, payload, created_at,
                                  updated_at, seq)
    VALUES (p_workspace_id, _chat_id, p_action ->> 'action_id', p_action ->> 'action_type', _after.display_text,
            _after.payload, clock_timestamp(), clock_timestamp(), _after.seq)
    ON CONFLICT (workspace_id, chat_id, action_id) DO UPDATE
    SET display_text = excluded.display_text,
        payload = excluded.payload,
        updated_at = excluded.updated_at,
        seq = excluded.seq
    RETURNING a.* INTO _after;
    RETURN jsonb_build_object('verdict', _verdict, 'action', action_document(_after), 'seq', _seq);
END $$;
