-- store_turns(turns, slots, taken, kept, gates, run_id, now)
--
-- What turns change: the reply, the conversation, the log, the inbox, and how new the chat's last update is. The step of
-- commit_turns_across that nothing else calls. A turn whose update was answered before leaves the conversation as it is;
-- its update is done and logged.
--
-- turns     of judge_turns; slots, taken, kept and gates are those of assign_reply_slots, row by row
-- Changes   bot_outbox, bot_inbox, bot_state, bot_logs, bot_chats
-- Appends   bot_escalated
-- Locks     bot_inbox, bot_state by key; bot_chats are held by the caller
CREATE OR REPLACE FUNCTION store_turns(
    p_turns decided_turn[],
    p_slots timestamptz[],
    p_taken boolean[],
    p_kept boolean[],
    p_gates timestamptz[],
    p_run_id uuid,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    WITH replied AS (
        INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, reply_id, kind, response_hash,
                                plan_hash, response, attempt, slot_at, next_attempt_at, trace_id, traceparent, created_at)
        SELECT t.workspace_id, t.chat_id, t.reply ->> 'key', t.reply_id,
               coalesce(t.reply ->> 'kind', 'reply'), t.reply ->> 'response_hash', t.reply ->> 'plan_hash',
               jsonb_build_object('plan', t.reply -> 'plan', 'progress', '[]'::jsonb),
               t.is_taken::int, CASE WHEN t.is_taken THEN t.slot END,
               CASE WHEN t.is_kept THEN p_now ELSE coalesce(t.slot, p_now) END, t.trace_id, t.traceparent, p_now
        FROM unnest(p_turns, p_slots, p_taken, p_kept) AS t (
            place, workspace_id, chat_id, lease_token, trace_id, traceparent, updates, next, reply, escalation, provider,
            reply_id, is_answered, slot, is_taken, is_kept
        )
        WHERE t.reply_id IS NOT NULL
    ), handled AS MATERIALIZED (
        SELECT t.workspace_id, t.provider, t.chat_id, t.place, t.is_answered, t.gate, u ->> 'key' AS key,
               u -> 'log' AS log, n, i.*
        FROM unnest(p_turns, p_gates) AS t (
            place, workspace_id, chat_id, lease_token, trace_id, traceparent, updates, next, reply, escalation, provider,
            reply_id, is_answered, gate
        )
        CROSS JOIN LATERAL jsonb_array_elements(t.updates) WITH ORDINALITY AS u (u, n)
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates; who has the chat changes it alone
            SELECT i.ctid AS row_place, i.trace_id, i.provider_ts, i.provider_seq
            FROM bot_inbox i
            WHERE i.workspace_id = t.workspace_id
              AND i.provider = t.provider
              AND i.chat_id = t.chat_id
              AND i.provider_message_id = u ->> 'key'
              AND i.processed_at IS NULL
            OFFSET 0
        ) AS i
    ), done AS (
        UPDATE bot_inbox i
        SET processed_at = p_now
        FROM handled h
        WHERE i.ctid = h.row_place
        RETURNING h.*
    ), logged AS (
        INSERT INTO bot_logs (workspace_id, ts, chat_id, message_text, matched_rule_id, rule_version, state_before,
                              state_after, response_preview, meta)
        SELECT d.workspace_id, p_now, d.chat_id, d.log ->> 'message_text', d.log ->> 'matched_rule_id',
               (d.log ->> 'rule_version')::int, d.log ->> 'state_before', d.log ->> 'state_after',
               d.log ->> 'response_preview',
               d.log -> 'meta' || jsonb_build_object(
                   'key', d.key, 'trace_id', d.trace_id,
                   'idempotency_key', reply_key(d.workspace_id, d.chat_id, d.key),
                   'adapter', jsonb_build_object('platform', d.provider, 'attempt', 1))
               || CASE WHEN d.is_answered THEN '{"outcome": "answered"}'::jsonb ELSE '{}' END
        FROM done d
        ORDER BY d.place, d.n
    ), newest AS (
        SELECT DISTINCT ON (d.place) d.workspace_id, d.chat_id, d.gate, d.provider_ts, d.provider_seq
        FROM done d
        ORDER BY d.place, d.provider_ts DESC NULLS LAST, d.provider_seq DESC NULLS LAST
    )
    UPDATE bot_chats c
    SET last_provider_seq = CASE WHEN n.provider_ts >= coalesce(c.last_provider_ts, n.provider_ts)
                                 THEN n.provider_seq ELSE c.last_provider_seq END,
        last_provider_ts = greatest(c.last_provider_ts, n.provider_ts),
        next_allowed_at = coalesce(n.gate, c.next_allowed_at),
        takes = 0
    FROM newest n
    WHERE c.workspace_id = n.workspace_id
      AND c.chat_id = n.chat_id;

    INSERT INTO bot_state AS s (workspace_id, chat_id, state, context, expires_at, updated_at)
    SELECT t.workspace_id, t.chat_id, t.next ->> 'state', t.next -> 'context',
           p_now + make_interval(secs => (t.next ->> 'expires_in')::double precision), p_now
    FROM unnest(p_turns) AS t
    WHERE t.next IS NOT NULL
      AND NOT t.is_answered
    ON CONFLICT (workspace_id, chat_id) DO UPDATE
    SET state = excluded.state,
        context = excluded.context,
        expires_at = excluded.expires_at,
        updated_at = excluded.updated_at
    WHERE (s.state, s.context, s.expires_at) IS DISTINCT FROM (excluded.state, excluded.context, excluded.expires_at);

    INSERT INTO events (workspace_id, ts, action, meta)
    SELECT t.workspace_id, p_now, 'bot_escalated',
           event_meta(t.trace_id, p_run_id, jsonb_build_object(
               'chat', chat_token(t.workspace_id, t.chat_id), 'code', t.escalation ->> 'code'))
    FROM unnest(p_turns) AS t
    WHERE t.escalation IS NOT NULL
      AND NOT t.is_answered;
END $$;
