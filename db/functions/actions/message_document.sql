-- message_document(update) -> a customer's message as clients of the chat stream read it
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
        'text', p_update.update #>> '{message,body,text}',
        'createdAt', utc_text(p_update.ts)
    )
$$;
