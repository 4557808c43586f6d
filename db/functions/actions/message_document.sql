-- message_document(update) -> a customer's message as clients of the chat stream read it
--
-- The text is cut at the 4,000 characters that MAX allows: a longer one was written by no customer, and hundreds of
-- them in one answer would hold up everybody.
CREATE OR REPLACE FUNCTION message_document(p_update bot_inbox)
RETURNS jsonb
LANGUAGE sql
IMMUTABLE
SET search_path = public, pg_temp
AS $$
    SELECT jsonb_build_object(
        'workspaceId', p_update.workspace_id,
        'chatId', p_update.chat_id,
        'messageId', p_update.provider_message_id,
        'direction', 'in',
        'text', left(p_update.update #>> '{message,body,text}', 4000),
        'createdAt', utc_text(p_update.ts)
    )
$$;
