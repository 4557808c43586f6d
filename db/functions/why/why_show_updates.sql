-- why_show_updates(id, workspace_id, limit, now) -> updates of customers that an id means, for why
--
-- {"kind": "update", "workspace_id", "chat", "update_kind", "stored_at", "trace_id", "ignored", "handled_at", "outcome",
-- "rule", "state_before", "state_after", "reply", "gate": of why_bot_gate}. It has no words of a customer; `autopost bot
-- why` shows them, with a reason. Nor has it the platform's text of an error, which may name the chat.
--
-- id        the id of a reply, or the provider's id of a message (mid.…), the key of a press (cb:…) or a start (start:…)
-- Cost      by the id of a reply one probe in every workspace, else one in every chat
CREATE OR REPLACE FUNCTION why_show_updates(p_id text, p_workspace_id uuid, p_limit int, p_now timestamptz)
RETURNS SETOF jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH asked AS MATERIALIZED (
        SELECT CASE WHEN p_id ~* '^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$' THEN p_id::uuid END AS uuid
    ), tenants AS MATERIALIZED (
        SELECT w.workspace_id
        FROM workspaces w
        WHERE (p_workspace_id IS NULL OR w.workspace_id = p_workspace_id)
          AND sees_workspace(w.workspace_id)
    ), found AS MATERIALIZED (
        SELECT b.workspace_id, b.chat_id, b.inbound_provider_message_id AS key
        FROM asked a, tenants t
        JOIN bot_outbox b USING (workspace_id)
        WHERE b.reply_id = a.uuid
        UNION
        (SELECT i.workspace_id, i.chat_id, i.provider_message_id
         FROM tenants t
         JOIN bot_settings s USING (workspace_id)
         JOIN bot_chats c USING (workspace_id)
         JOIN bot_inbox i
           ON i.workspace_id = t.workspace_id
          AND i.provider = s.provider
          AND i.chat_id = c.chat_id
          AND i.provider_message_id = p_id
         WHERE p_id ~ '^(mid\.|cb:|start:)'
         LIMIT p_limit)
    )
    SELECT jsonb_build_object(
               'kind', 'update', 'workspace_id', f.workspace_id, 'chat', chat_token(f.workspace_id, f.chat_id),
               'update_kind', i.kind, 'stored_at', i.ts, 'trace_id', coalesce(i.trace_id, b.trace_id),
               'ignored', i.ignored, 'handled_at', i.processed_at, 'outcome', l.meta ->> 'outcome',
               'rule', l.matched_rule_id || ' v' || l.rule_version, 'state_before', l.state_before,
               'state_after', l.state_after,
               'reply', CASE WHEN b.reply_id IS NOT NULL THEN jsonb_build_object(
                   'reply_id', b.reply_id, 'attempt', b.attempt, 'decided_at', b.created_at, 'sent_at', b.sent_at,
                   'failed_at', b.failed_at, 'error', shown_error(b.last_error) - 'message') END,
               'gate', why_bot_gate(f.workspace_id, f.chat_id, f.key, coalesce(p_now, clock_timestamp())))
    FROM found f
    LEFT JOIN bot_settings s ON s.workspace_id = f.workspace_id
    LEFT JOIN bot_inbox i
      ON i.workspace_id = f.workspace_id
     AND i.provider = s.provider
     AND i.chat_id = f.chat_id
     AND i.provider_message_id = f.key
    LEFT JOIN LATERAL (
        SELECT l.*
        FROM bot_logs l
        WHERE l.workspace_id = f.workspace_id
          AND l.ts = i.processed_at
          AND l.chat_id = f.chat_id
          AND l.meta ->> 'key' = f.key
        LIMIT 1
    ) AS l ON true
    LEFT JOIN bot_outbox b
      ON b.workspace_id = f.workspace_id
     AND b.chat_id = f.chat_id
     AND b.inbound_provider_message_id = f.key
    ORDER BY i.ts
    LIMIT p_limit
$$;
