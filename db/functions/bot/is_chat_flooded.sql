-- is_chat_flooded(chat, most) -> whether the chat has used up what is answered in its current minute
--
-- most      updates per minute; null: no limit
CREATE OR REPLACE FUNCTION is_chat_flooded(p_chat bot_chats, p_most int)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = public, pg_temp
AS $$
    SELECT coalesce(p_chat.minute_count >= p_most
                    AND p_chat.minute_started_at > clock_timestamp() - interval '1 minute', false)
$$;
