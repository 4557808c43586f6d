-- reply_document(reply) -> the bot's reply as clients of the chat stream read it
--
-- The text is cut like that of message_document.
CREATE OR REPLACE FUNCTION reply_document(p_reply bot_outbox)
RETURNS jsonb
LANGUAGE sql
IMMUTABLE
SET search_path = public, pg_temp
AS $$
    SELECT jsonb_build_object(
        'workspaceId', p_reply.workspace_id,
        'chatId', p_reply.chat_id,
        'messageId', coalesce(p_reply.provider_message_id, p_reply.reply_id::text),
        'direction', 'out',
        'text', (SELECT left(string_agg(part ->> 'text', E'\n\n' ORDER BY nth), 4000)
                 FROM jsonb_array_elements(p_reply.response #> '{plan,parts}') WITH ORDINALITY AS p (part, nth)),
        'createdAt', utc_text(coalesce(p_reply.sent_at, p_reply.created_at))
    )
$$;
