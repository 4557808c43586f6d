-- is_flood_notice(settings, chat, ignored) -> whether the customer is to be told that this update is one too many
--
-- Only the first one over the limit in a minute of the chat, and only where the settings have the text `flood`. The bot
-- says it in its turn; the update itself is not answered.
--
-- chat      its row before the update is counted
CREATE OR REPLACE FUNCTION is_flood_notice(p_settings bot_settings, p_chat bot_chats, p_ignored text)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
SET search_path = public, pg_temp
AS $$
    SELECT coalesce(p_ignored = 'chat_flood'
                    AND p_chat.minute_count = p_settings.chat_per_minute
                    AND p_settings.texts ->> 'flood' IS NOT NULL, false)
$$;
