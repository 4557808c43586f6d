-- why_bot_gate(workspace_id, chat_id, key, now) -> what an update of a customer, or the reply to it, waits for
--
-- Null when it is answered, refused for good, or answered by nobody.
-- {"gate", "since", "until", "released_by", "command", "cause"}, as in why_delivery. Gates:
--
-- workspace_paused | _disabled    nothing is answered there
-- bot_off            bot_settings is missing or not enabled
-- set_aside          the bot failed in this workspace and waits
-- platform_outage    the platform does not answer the token of the bot
-- lease              a worker of the bot has the chat
-- retry_backoff      the reply failed and is tried again
-- behind_in_chat     something earlier in the chat goes first
-- due                the bot takes the chat next
CREATE OR REPLACE FUNCTION why_bot_gate(p_workspace_id uuid, p_chat_id text, p_key text, p_now timestamptz)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT jsonb_build_object(
               'gate', g.gate, 'since', g.since, 'until', g.until,
               'released_by', CASE g.gate
                   WHEN 'bot_off' THEN 'settings' WHEN 'set_aside' THEN 'time' WHEN 'retry_backoff' THEN 'time'
                   WHEN 'platform_outage' THEN 'platform' WHEN 'lease' THEN 'bot' WHEN 'behind_in_chat' THEN 'bot'
                   WHEN 'due' THEN 'bot' ELSE 'operator' END,
               'command', CASE
                   WHEN g.gate LIKE 'workspace%'
                       THEN format('autopost workspace resume --workspace %s --reason ''…''', p_workspace_id)
                   WHEN g.gate = 'retry_backoff'
                       THEN format('autopost bot skip %s --reason ''…'', to give it up', b.reply_id)
               END,
               'cause', g.cause)
    FROM bot_chats c
    JOIN workspaces w ON w.workspace_id = p_workspace_id
    LEFT JOIN bot_settings s ON s.workspace_id = p_workspace_id
    LEFT JOIN platform_limits l
      ON l.workspace_id = p_workspace_id
     AND l.platform = s.provider
     AND l.rate_group = s.rate_group
    LEFT JOIN set_aside a
      ON a.workspace_id = p_workspace_id
     AND a.work = 'bot_turns'
     AND a.until > p_now
    LEFT JOIN bot_inbox i
      ON i.workspace_id = p_workspace_id
     AND i.provider = s.provider
     AND i.chat_id = p_chat_id
     AND i.provider_message_id = p_key
    LEFT JOIN bot_outbox b
      ON b.workspace_id = p_workspace_id
     AND b.chat_id = p_chat_id
     AND b.inbound_provider_message_id = p_key
    CROSS JOIN LATERAL (
        SELECT (SELECT count(*)
                FROM bot_inbox e
                WHERE e.workspace_id = p_workspace_id
                  AND e.provider = i.provider
                  AND e.chat_id = p_chat_id
                  AND e.processed_at IS NULL
                  AND (e.provider_ts, e.provider_seq, e.ts) < (i.provider_ts, i.provider_seq, i.ts)) AS updates,
               (SELECT count(*)
                FROM bot_outbox e
                WHERE e.workspace_id = p_workspace_id
                  AND e.chat_id = p_chat_id
                  AND e.sent_at IS NULL
                  AND e.failed_at IS NULL
                  AND e.inbound_provider_message_id <> p_key
                  AND e.place < coalesce(b.place, e.place + 1)) AS replies
    ) AS before
    CROSS JOIN LATERAL (
        SELECT v.gate, v.since, v.until, v.cause
        FROM (VALUES
            (1, w.status <> 'active', 'workspace_' || w.status, w.status_since, NULL::timestamptz, NULL::jsonb),
            (2, s.enabled IS NOT TRUE, 'bot_off', s.updated_at, NULL, NULL),
            (3, a.until IS NOT NULL, 'set_aside', a.since, a.until, jsonb_build_object('error', a.error)),
            (4, l.circuit <> 'closed' OR l.stalled_until > p_now, 'platform_outage', l.opened_at, l.stalled_until, NULL),
            (5, before.replies > 0 OR before.updates > 0, 'behind_in_chat', i.ts, NULL,
                jsonb_build_object('updates', before.updates, 'replies', before.replies)),
            (6, c.lease_until > p_now, 'lease', NULL, c.lease_until, NULL),
            (7, b.next_attempt_at > p_now, 'retry_backoff', b.created_at, b.next_attempt_at, shown_error(b.last_error) - 'message'),
            (8, true, 'due', c.due_at, NULL, NULL)
        ) AS v (place, holds, gate, since, until, cause)
        WHERE v.holds
        ORDER BY v.place
        LIMIT 1
    ) AS g
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = p_chat_id
      AND (i.processed_at IS NULL AND i.ts IS NOT NULL
           OR b.reply_id IS NOT NULL AND b.sent_at IS NULL AND b.failed_at IS NULL)
$$;
