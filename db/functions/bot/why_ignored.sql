-- why_ignored(settings, chat, update, provider_ts) -> why nobody answers this update; null when the bot does
--
-- settings  of the workspace, null when it has no bot; chat: its row under its lock, null when the update has none
-- update    as of store_bot_update, which says what each reason means
CREATE OR REPLACE FUNCTION why_ignored(p_settings bot_settings, p_chat bot_chats, p_update jsonb, p_provider_ts bigint)
RETURNS text
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT CASE
        WHEN p_update ->> 'kind' = 'bot_stopped' THEN 'stopped'
        WHEN p_chat.chat_id IS NULL OR NOT (p_update ->> 'answer')::boolean THEN 'unknown_kind'
        WHEN p_settings.workspace_id IS NULL THEN 'no_bot'
        WHEN coalesce((p_update ->> 'is_bot')::boolean, false) THEN 'bot_sender'
        WHEN coalesce(p_update ->> 'chat_type', p_chat.chat_type, 'dialog') <> ALL (p_settings.answer_in)
            THEN 'not_a_dialog'
        WHEN p_chat.stopped_at IS NOT NULL AND EXISTS (
            SELECT 1
            FROM bot_inbox i
            WHERE i.workspace_id = p_chat.workspace_id
              AND i.chat_id = p_chat.chat_id
              AND i.kind = 'bot_stopped'
              AND i.provider_ts > p_provider_ts
        ) THEN 'stopped'
        WHEN is_chat_flooded(p_chat, p_settings.chat_per_minute) THEN 'chat_flood'
    END
$$;
