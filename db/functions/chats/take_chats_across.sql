-- take_chats_across(workspace_ids, limits, lease, each) -> the chats that the caller now has in these workspaces
--
-- take_chats in each of them, as statements over all of them: so the fixed cost of a take is paid once. A workspace gets
-- what take_chats would give it, at most its limit of chats; limits go with workspace_ids, row by row.
--
-- each         how many updates of a chat; null: as many as the settings of its bot make one turn of (gather)
-- Fails        as a whole: the caller finds the workspace that is to blame, and takes in the others
-- Locks        as take_chats, then bot_due; it waits for nobody but who writes one of these replies
-- Steps        end_lost_replies, note_bot_turns
CREATE OR REPLACE FUNCTION take_chats_across(
    p_workspace_ids uuid[],
    p_limits int[],
    p_lease interval DEFAULT '30 seconds',
    p_each int DEFAULT NULL
)
RETURNS TABLE (
    workspace_id uuid,
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
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET lock_timeout = '500ms'
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := clock_timestamp();
    _due record;
BEGIN
    SELECT array_agg(d.workspace_id) AS workspaces, array_agg(d.chat_id) AS chats, array_agg(d.each) AS each,
           array_agg(d.rules_seq) AS rules_seqs, bool_or(d.is_lost) AS any_lost
    INTO _due
    FROM (
        SELECT b.workspace_id, b.each, b.rules_seq, c.chat_id, c.takes, c.lease_until IS NOT NULL AS is_lost,
               row_number() OVER (PARTITION BY b.workspace_id, c.takes > 0 ORDER BY c.due_at) AS nth
        FROM (SELECT * FROM unnest(p_workspace_ids, p_limits) AS p (workspace_id, most) ORDER BY p.workspace_id) AS p
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT s.workspace_id, s.rules_seq, coalesce(p_each, greatest(s.gather, 1)) AS each,
                   least(p.most, bot_may_take(g.circuit, g.trial, g.stalled_until, _now)) AS most
            FROM bot_settings s
            JOIN workspaces w
              ON w.workspace_id = s.workspace_id
             AND w.status = 'active'
            JOIN platform_limits g
              ON g.workspace_id = s.workspace_id
             AND g.platform = s.provider
             AND g.rate_group = s.rate_group
            WHERE s.workspace_id = p.workspace_id
              AND s.enabled
            OFFSET 0
        ) AS b
        CROSS JOIN LATERAL (
            SELECT c.chat_id, c.takes, c.due_at, c.lease_until
            FROM bot_chats c
            WHERE c.workspace_id = b.workspace_id
              AND c.due_at <= _now
              AND (c.lease_until IS NULL OR c.lease_until <= _now)
            ORDER BY c.due_at
            LIMIT b.most
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS c
    ) AS d
    WHERE d.takes = 0
       OR d.nth = 1;
    IF _due.chats IS NULL THEN
        RETURN;
    END IF;
    IF _due.any_lost THEN
        PERFORM end_lost_replies(_due.workspaces, _due.chats, _now);
    END IF;

    -- A new statement: it sees what was committed before the locks were granted.
    RETURN QUERY
    WITH pending AS MATERIALIZED (
        SELECT c.workspace_id, c.chat_id, c.each, c.rules_seq, b.*
        FROM unnest(_due.workspaces, _due.chats, _due.each, _due.rules_seqs)
            AS c (workspace_id, chat_id, each, rules_seq)
        LEFT JOIN LATERAL (
            SELECT b.inbound_provider_message_id AS key, b.reply_id, b.response, b.attempt, b.created_at,
                   b.next_attempt_at, b.trace_id, b.traceparent, b.last_error
            FROM bot_outbox b
            WHERE b.workspace_id = c.workspace_id
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
                       'flooded', i.ignored IS NOT NULL, 'body', i.update, 'trace_id', i.trace_id,
                       'traceparent', i.traceparent)
                       ORDER BY i.provider_ts, i.provider_seq, i.ts, i.provider_message_id) AS updates
            FROM (
                SELECT i.*
                FROM bot_inbox i
                WHERE i.workspace_id = p.workspace_id
                  AND i.chat_id = p.chat_id
                  AND i.processed_at IS NULL
                ORDER BY i.provider_ts, i.provider_seq, i.ts, i.provider_message_id
                LIMIT p.each
            ) AS i
        ) AS u ON p.key IS NULL
    ), taken AS (
        UPDATE bot_chats c
        SET lease_token = gen_random_uuid(),
            lease_until = _now + p_lease,
            takes = c.takes + CASE WHEN w.key IS NULL THEN 1 ELSE 0 END
        FROM work w
        WHERE c.workspace_id = w.workspace_id
          AND c.chat_id = w.chat_id
          AND (w.next_attempt_at <= _now OR w.updates IS NOT NULL)
        RETURNING c.lease_token, c.takes, c.last_provider_ts, w.*
    ), left_alone AS ( -- its reply is due later, or there is nothing to do
        UPDATE bot_chats c
        SET due_at = w.next_attempt_at,
            lease_token = NULL,
            lease_until = NULL
        FROM work w
        WHERE c.workspace_id = w.workspace_id
          AND c.chat_id = w.chat_id
          AND NOT (w.next_attempt_at <= _now OR w.updates IS NOT NULL) IS TRUE
    )
    SELECT t.workspace_id, t.chat_id, t.lease_token, t.takes, coalesce(s.state, 'default'),
           coalesce(s.context, '{"turns": 0}'), s.expires_at, t.last_provider_ts,
           CASE WHEN t.key IS NOT NULL THEN jsonb_build_object(
               'key', t.key, 'reply_id', t.reply_id, 'plan', t.response -> 'plan',
               'progress', coalesce(t.response -> 'progress', '[]'), 'attempt', t.attempt,
               'created_at', t.created_at, 'trace_id', t.trace_id, 'traceparent', t.traceparent,
               'maybe_sent', coalesce(t.last_error @> '{"ambiguous": true}', false),
               'sent_ids', CASE WHEN t.last_error @> '{"ambiguous": true}'
                                THEN sent_reply_ids(t.workspace_id, t.chat_id) ELSE '[]' END) END,
           t.updates, t.rules_seq
    FROM taken t
    LEFT JOIN LATERAL (
        SELECT s.state, s.context, s.expires_at
        FROM bot_state s
        WHERE s.workspace_id = t.workspace_id
          AND s.chat_id = t.chat_id
        OFFSET 0
    ) AS s ON true;
    PERFORM note_bot_turns(_due.workspaces, _now);
END $$;
