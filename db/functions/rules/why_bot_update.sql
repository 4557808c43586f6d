-- why_bot_update(workspace_id, key, operator, reason) -> what became of updates of customers, one row per chat
--
-- key       the message id of the provider, or the key of another update; several chats may have the same. It shows what
--           people wrote, so it leaves an event
-- ruleset   what the turn was decided by: {"rules", "settings"}
-- Appends   payload_accessed, if there is such an update
-- Raises    AP010 without operator or reason
CREATE OR REPLACE FUNCTION why_bot_update(p_workspace_id uuid, p_key text, p_operator text, p_reason text)
RETURNS TABLE (
    chat text,
    kind text,
    at timestamptz,
    provider_ts bigint,
    update jsonb,
    ignored text,
    processed_at timestamptz,
    log jsonb,
    ruleset jsonb,
    reply jsonb
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
BEGIN
    RETURN QUERY
    SELECT chat_token(p_workspace_id, i.chat_id), i.kind, i.ts, i.provider_ts, i.update, i.ignored, i.processed_at,
           to_jsonb(l) - 'chat_id' - 'workspace_id',
           jsonb_build_object('rules', r.rules, 'settings', r.settings),
           jsonb_build_object(
               'reply_id', b.reply_id, 'attempt', b.attempt, 'slot_at', b.slot_at, 'sent_at', b.sent_at,
               'failed_at', b.failed_at, 'next_attempt_at', b.next_attempt_at, 'last_error', b.last_error,
               'provider_message_id', b.provider_message_id)
    FROM bot_settings s
    JOIN bot_chats c ON c.workspace_id = p_workspace_id
    JOIN bot_inbox i
      ON i.workspace_id = p_workspace_id
     AND i.provider = s.provider
     AND i.chat_id = c.chat_id
     AND i.provider_message_id = p_key
    LEFT JOIN LATERAL (
        SELECT l.*
        FROM bot_logs l
        WHERE l.workspace_id = p_workspace_id
          AND l.ts = i.processed_at
          AND l.chat_id = i.chat_id
          AND l.meta ->> 'key' = p_key
        LIMIT 1
    ) AS l ON true
    LEFT JOIN bot_rulesets r
      ON r.workspace_id = p_workspace_id
     AND r.ruleset_hash = l.meta ->> 'ruleset'
    LEFT JOIN bot_outbox b
      ON b.workspace_id = p_workspace_id
     AND b.chat_id = i.chat_id
     AND b.inbound_provider_message_id = p_key
    WHERE s.workspace_id = p_workspace_id
    ORDER BY i.ts;
    IF FOUND THEN
        INSERT INTO events (workspace_id, action, meta)
        VALUES (p_workspace_id, 'payload_accessed', event_meta(NULL, NULL, _signature || jsonb_build_object(
            'what', 'why_bot_update', 'source_ref', quoted(p_key, 256))));
    END IF;
END $$;
