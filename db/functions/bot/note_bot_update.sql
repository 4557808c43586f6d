-- note_bot_update(settings, chat, update, provider_ts, ignored) -> the row of the chat after an update
--
-- For store_bot_update, which has locked the row.
--
-- Minute    starts with the first update after the last one ended; every update of the chat counts
-- Stopped   set by bot_stopped, unless the inbox has something newer of the customer; cleared by whatever the customer
--           does afterwards: start, write or press
-- Appends   bot_update_ignored for what a person wrote in vain: the first time in a minute
CREATE OR REPLACE FUNCTION note_bot_update(
    p_settings bot_settings,
    p_chat bot_chats,
    p_update jsonb,
    p_provider_ts bigint,
    p_ignored text
)
RETURNS bot_chats
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _now timestamptz := clock_timestamp();
    _kind text := p_update ->> 'kind';
    _is_new_minute boolean := coalesce(p_chat.minute_started_at <= _now - interval '1 minute', true);
    _is_dialog boolean := coalesce(p_update ->> 'chat_type', p_chat.chat_type, 'dialog') = 'dialog';
    _stopped_at timestamptz := p_chat.stopped_at;
    _after bot_chats;
BEGIN
    IF _kind = 'bot_stopped' AND NOT EXISTS (
        SELECT 1
        FROM bot_inbox i
        WHERE i.workspace_id = p_chat.workspace_id
          AND i.chat_id = p_chat.chat_id
          AND i.kind IN ('message_created', 'message_callback', 'bot_started')
          AND i.provider_ts > p_provider_ts
    ) THEN
        _stopped_at := _now;
    ELSIF p_ignored IS NULL OR p_ignored = 'chat_flood' THEN
        _stopped_at := NULL;
    END IF;

    UPDATE bot_chats c
    SET seq = c.seq + (_kind = 'message_created')::int,
        changed_at = _now,
        user_id = coalesce(CASE WHEN _is_dialog THEN p_update ->> 'user_id' END, c.user_id),
        chat_type = coalesce(p_update ->> 'chat_type', c.chat_type),
        due_at = CASE WHEN p_ignored IS NULL OR is_flood_notice(p_settings, p_chat, p_ignored) THEN least(c.due_at, _now) ELSE c.due_at END,
        minute_started_at = CASE WHEN _is_new_minute THEN _now ELSE c.minute_started_at END,
        minute_count = CASE WHEN _is_new_minute THEN 1 ELSE c.minute_count + 1 END,
        stopped_at = _stopped_at
    WHERE c.workspace_id = p_chat.workspace_id
      AND c.chat_id = p_chat.chat_id
    RETURNING * INTO _after;

    IF _is_new_minute AND p_ignored IN ('no_bot', 'bot_sender', 'not_a_dialog')
       OR p_ignored = 'chat_flood' AND p_chat.minute_count = p_settings.chat_per_minute THEN
        INSERT INTO events (workspace_id, action, meta)
        VALUES (p_chat.workspace_id, 'bot_update_ignored', event_meta(
                    p_update ->> 'trace_id', NULL, jsonb_build_object(
                        'chat', chat_token(p_chat.workspace_id, p_chat.chat_id), 'reason', p_ignored)));
    END IF;
    RETURN _after;
END $$;
