-- take_chats(workspace_id, limit, each, lease) -> the chats that the caller now has, with what is to be done in each
--
-- One worker at a time has a chat, for the time of its lease; the state is read under that lease. So updates of one chat
-- are handled one after the other, in their order, by any number of workers.
--
-- lease_token  fresh for each take: a worker that comes back after its lease is refused by every later call
-- state …      the conversation as it is now
-- reply        the oldest reply that is decided and has not ended; it goes before any update. {"key", "reply_id", "plan",
--              "progress", "attempt", "created_at", "maybe_sent", "sent_ids", trace}. maybe_sent: look for it in the chat
--              first; sent_ids are messages of other replies, which it is not
-- updates      else: the oldest unanswered ones, in the order of the provider
-- takes        how often they were taken since the last commit, this time included; a third time is poison. Of the chats
--              that were taken before, one is handed out at a time: else those that were lost together with a poisoned
--              one would be taken for poison, too
-- rules_seq    raised by each change of rules and settings: load them anew when it is not the one you have
-- Guarantees   nothing of a workspace that is paused or whose platform does not answer; of a half circuit one chat
-- Changes      bot_chats; a reply whose attempts are used up by workers that died -> failed
-- Appends      bot_reply_failed
-- Locks        bot_chats SKIP LOCKED, bot_outbox by key
CREATE OR REPLACE FUNCTION take_chats(
    p_workspace_id uuid,
    p_limit int DEFAULT 50,
    p_each int DEFAULT 1,
    p_lease interval DEFAULT '30 seconds'
)
RETURNS TABLE (
    chat_id text,
    lease_token uuid,
    takes int,
    state text,
    context jsonb,
    expires_at timestamptz,
    newest_ms bigint,
    reply jsonb,
    updates jsonb,
    rules_seq bigint
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := clock_timestamp();
    _bot record;
    _chats text[];
BEGIN
    SELECT s.rules_seq, s.provider,
           least(p_limit, bot_may_take(g.circuit, g.trial, g.stalled_until, _now)) AS most
    INTO _bot
    FROM bot_settings s
    JOIN workspaces w
      ON w.workspace_id = s.workspace_id
     AND w.status = 'active'
    JOIN platform_limits g
      ON g.workspace_id = s.workspace_id
     AND g.platform = s.provider
     AND g.rate_group = s.rate_group
    WHERE s.workspace_id = p_workspace_id
      AND s.enabled;
    IF NOT FOUND OR _bot.most < 1 THEN
        RETURN;
    END IF;

    WITH due AS MATERIALIZED (
        SELECT c.chat_id, c.takes, c.due_at
        FROM bot_chats c
        WHERE c.workspace_id = p_workspace_id
          AND c.due_at <= _now
          AND (c.lease_until IS NULL OR c.lease_until <= _now)
        ORDER BY c.due_at
        LIMIT _bot.most
        FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT coalesce(array_agg(d.chat_id), '{}')
    INTO _chats
    FROM (
        SELECT d.chat_id, d.takes, row_number() OVER (PARTITION BY d.takes > 0 ORDER BY d.due_at) AS nth
        FROM due d
    ) AS d
    WHERE d.takes = 0
       OR d.nth = 1;
    IF _chats = '{}' THEN
        RETURN;
    END IF;
    PERFORM note_bot_turn(p_workspace_id, _now);
    PERFORM end_lost_replies(p_workspace_id, _chats, _now);

    -- A new statement: it sees what was committed before the locks were granted.
    RETURN QUERY
    WITH pending AS MATERIALIZED (
        SELECT c.chat_id, b.*
        FROM unnest(_chats) AS c (chat_id)
        LEFT JOIN LATERAL (
            SELECT b.inbound_provider_message_id AS key, b.reply_id, b.response, b.attempt, b.created_at,
                   b.next_attempt_at, b.trace_id, b.traceparent, b.last_error
            FROM bot_outbox b
            WHERE b.workspace_id = p_workspace_id
              AND b.chat_id = c.chat_id
              AND b.sent_at IS NULL
              AND b.failed_at IS NULL
            ORDER BY b.place
            LIMIT 1
        ) AS b ON true
    ), work AS MATERIALIZED (
        SELECT p.*, u.updates
        FROM pending p
        LEFT JOIN LATERAL (
            SELECT jsonb_agg(jsonb_build_object(
                       'key', i.provider_message_id, 'kind', i.kind, 'at', i.ts, 'provider_ms', i.provider_ts,
                       'flooded', i.ignored IS NOT NULL, 'body', i.update, 'trace_id', i.trace_id, 'traceparent', i.traceparent)
                       ORDER BY i.provider_ts, i.provider_seq, i.ts, i.provider_message_id) AS updates
            FROM (
                SELECT i.*
                FROM bot_inbox i
                WHERE i.workspace_id = p_workspace_id
                  AND i.chat_id = p.chat_id
                  AND i.processed_at IS NULL
                ORDER BY i.provider_ts, i.provider_seq, i.ts, i.provider_message_id
                LIMIT greatest(p_each, 1)
            ) AS i
        ) AS u ON p.key IS NULL
    ), taken AS (
        UPDATE bot_chats c
        SET due_at = _now + p_lease,
            lease_token = gen_random_uuid(),
            lease_until = _now + p_lease,
            takes = c.takes + CASE WHEN w.key IS NULL THEN 1 ELSE 0 END
        FROM work w
        WHERE c.workspace_id = p_workspace_id
          AND c.chat_id = w.chat_id
          AND (w.next_attempt_at <= _now OR w.updates IS NOT NULL)
        RETURNING c.chat_id, c.lease_token, c.takes, c.last_provider_ts
    ), left_alone AS ( -- its reply is due later, or there is nothing to do
        UPDATE bot_chats c
        SET due_at = w.next_attempt_at,
            lease_token = NULL,
            lease_until = NULL
        FROM work w
        WHERE c.workspace_id = p_workspace_id
          AND c.chat_id = w.chat_id
          AND NOT (w.next_attempt_at <= _now OR w.updates IS NOT NULL) IS TRUE
    )
    SELECT t.chat_id, t.lease_token, t.takes, coalesce(s.state, 'default'), coalesce(s.context, '{"turns": 0}'),
           s.expires_at, t.last_provider_ts,
           CASE WHEN w.key IS NOT NULL THEN jsonb_build_object(
               'key', w.key, 'reply_id', w.reply_id, 'plan', w.response -> 'plan',
               'progress', coalesce(w.response -> 'progress', '[]'), 'attempt', w.attempt,
               'created_at', w.created_at, 'trace_id', w.trace_id, 'traceparent', w.traceparent,
               'maybe_sent', coalesce(w.last_error @> '{"ambiguous": true}', false),
               'sent_ids', CASE WHEN w.last_error @> '{"ambiguous": true}'
                                THEN sent_reply_ids(p_workspace_id, t.chat_id) ELSE '[]' END) END,
           w.updates, _bot.rules_seq
    FROM taken t
    JOIN work w USING (chat_id)
    LEFT JOIN bot_state s
      ON s.workspace_id = p_workspace_id
     AND s.chat_id = t.chat_id;
END $$;
