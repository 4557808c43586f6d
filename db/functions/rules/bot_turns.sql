-- bot_turns(workspace_id, since, until, after, limit, operator, reason, chat) -> handled updates with their log lines
--
-- In the order in which they were handled, a chat after the other. It shows what people wrote, so the first page leaves
-- an event.
--
-- after     the place of the last row of the page before; null: the first page
-- chat      the token of one chat; null: all of them. update is null once the inbox has forgotten it
-- Appends   payload_accessed, with the first page
-- Raises    AP010 without operator or reason
CREATE OR REPLACE FUNCTION bot_turns(
    p_workspace_id uuid,
    p_since timestamptz,
    p_until timestamptz,
    p_after jsonb,
    p_limit int,
    p_operator text,
    p_reason text,
    p_chat text DEFAULT NULL
)
RETURNS TABLE (
    place jsonb,
    chat text,
    key text,
    kind text,
    at timestamptz,
    provider_ts bigint,
    update jsonb,
    logged_at timestamptz,
    message_text text,
    matched_rule_id text,
    rule_version int,
    state_before text,
    state_after text,
    response_preview text,
    response_hash text,
    meta jsonb
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
BEGIN
    IF p_after IS NULL THEN
        INSERT INTO events (workspace_id, action, meta)
        VALUES (p_workspace_id, 'payload_accessed', event_meta(NULL, NULL, _signature || jsonb_build_object(
            'what', 'bot_turns', 'since', p_since, 'until', p_until, 'chat', p_chat)));
    END IF;
    RETURN QUERY
    SELECT jsonb_build_array(l.chat_id, l.ts, o.provider_ts, o.provider_seq, l.id), chat_token(p_workspace_id, l.chat_id), l.meta ->> 'key', i.kind,
           i.ts, i.provider_ts, i.update, l.ts, l.message_text, l.matched_rule_id, l.rule_version, l.state_before,
           l.state_after, l.response_preview, b.response_hash, l.meta
    FROM bot_logs l
    JOIN bot_settings s ON s.workspace_id = p_workspace_id
    LEFT JOIN bot_inbox i
      ON i.workspace_id = p_workspace_id
     AND i.provider = s.provider
     AND i.chat_id = l.chat_id
     AND i.provider_message_id = l.meta ->> 'key'
    LEFT JOIN bot_outbox b
      ON b.workspace_id = p_workspace_id
     AND b.chat_id = l.chat_id
     AND b.inbound_provider_message_id = l.meta ->> 'key'
    CROSS JOIN LATERAL ( -- of those that one commit handled
        SELECT coalesce(i.provider_ts, 0) AS provider_ts, coalesce(i.provider_seq, 0) AS provider_seq
    ) AS o
    WHERE l.workspace_id = p_workspace_id
      AND l.ts >= p_since
      AND l.ts < p_until
      AND (p_chat IS NULL OR chat_token(p_workspace_id, l.chat_id) = p_chat)
      AND (p_after IS NULL
           OR (l.chat_id, l.ts, o.provider_ts, o.provider_seq, l.id)
              > (p_after ->> 0, (p_after ->> 1)::timestamptz, (p_after ->> 2)::bigint, (p_after ->> 3)::numeric,
                 (p_after ->> 4)::uuid))
    ORDER BY l.chat_id, l.ts, o.provider_ts, o.provider_seq, l.id
    LIMIT p_limit;
END $$;
