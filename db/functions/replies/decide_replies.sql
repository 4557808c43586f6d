-- decide_replies(outcomes, locked, jitter, now) -> a decided_reply for each of these outcomes
--
-- Reads what the outcomes say and decides what becomes of each reply. It writes nothing.
--
-- locked       the numbers of the outcomes whose chats the caller holds
-- key          null: there is no reply any more that waits, because an operator has ended it
-- status       sent, failed (PERMANENT, or the last attempt), or retry; a released one is a retry without an error
-- error        for events: it names codes only, because a platform's text may name the chat
CREATE OR REPLACE FUNCTION decide_replies(
    p_outcomes jsonb,
    p_locked bigint[],
    p_jitter double precision,
    p_now timestamptz
)
RETURNS decided_reply[]
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
    SELECT coalesce(array_agg((
               o.place, o.workspace_id, o.chat_id, b.key, b.reply_id, b.attempt, b.trace_id, o.result, n.status,
               CASE
                   WHEN n.status <> 'retry' THEN NULL
                   WHEN o.result = 'released'
                       THEN p_now + make_interval(secs => least(greatest(coalesce(o.retry_after_ms, 0), 0), 86400000) / 1000.0)
                   ELSE p_now + retry_delay(b.attempt, w.wait_ms, o.code, 'default', coalesce(p_jitter, random()))
               END,
               e.error, e.error || jsonb_strip_nulls(jsonb_build_object('message', left(o.message, 500))),
               o.provider_message_id, o.parts, o.category, o.scope, o.code, w.wait_ms,
               o.result = 'sent' OR (o.result = 'failed' AND coalesce(o.answered, false))
           )::decided_reply ORDER BY o.place), '{}')
    FROM ROWS FROM (jsonb_to_recordset(p_outcomes) AS (
        workspace_id uuid, chat_id text, result text, provider_message_id text, parts jsonb, category text, scope text,
        code text, message text, retry_after_ms numeric, ambiguous boolean, answered boolean
    )) WITH ORDINALITY AS o (
        workspace_id, chat_id, result, provider_message_id, parts, category, scope, code, message, retry_after_ms,
        ambiguous, answered, place
    )
    CROSS JOIN current_policy() AS p
    LEFT JOIN LATERAL (
        SELECT b.inbound_provider_message_id AS key, b.reply_id, b.attempt, b.trace_id
        FROM bot_outbox b
        WHERE b.workspace_id = o.workspace_id
          AND b.chat_id = o.chat_id
          AND b.sent_at IS NULL
          AND b.failed_at IS NULL
        ORDER BY b.place
        LIMIT 1
    ) AS b ON true
    CROSS JOIN LATERAL (
        SELECT CASE WHEN o.retry_after_ms IS NOT NULL
                    THEN least(greatest(o.retry_after_ms, 0), 1e15) END::bigint AS wait_ms
    ) AS w
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN b.key IS NULL THEN NULL
            WHEN o.result = 'sent' THEN 'sent'
            WHEN o.result = 'released' THEN 'retry'
            WHEN o.category = 'PERMANENT' OR b.attempt >= p.max_attempts THEN 'failed'
            ELSE 'retry'
        END AS status
    ) AS n
    CROSS JOIN LATERAL (
        SELECT CASE WHEN o.result = 'failed' THEN bounded_error(jsonb_strip_nulls(jsonb_build_object(
            'category', o.category, 'scope', o.scope, 'code', o.code, 'retry_after_ms', w.wait_ms,
            'ambiguous', nullif(coalesce(o.ambiguous, false), false)))) END AS error
    ) AS e
    WHERE o.place = ANY (p_locked)
$$;
