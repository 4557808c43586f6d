-- commit_replies_across(outcomes, jitter, run_id) -> one verdict per outcome, by its number from 1
--
-- commit_replies in many workspaces, as statements over all of them: each outcome names its "workspace_id".
--
-- Fails        as a whole: the caller finds the outcome that is to blame, and commits the others. Also when a row is held
--              by another transaction for half a second: the others must not wait for it
-- Steps        lock_reply_groups, lock_chats, decide_replies, settle_reply_circuit
-- Locks        as commit_replies, in the order of workspaces
CREATE OR REPLACE FUNCTION commit_replies_across(
    p_outcomes jsonb,
    p_jitter double precision DEFAULT NULL,
    p_run_id uuid DEFAULT NULL
)
RETURNS TABLE (nth bigint, verdict text, seq bigint, failed boolean, more boolean)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET lock_timeout = '500ms'
AS $$
#variable_conflict use_column
DECLARE
    _given record;
    _groups record;
    _locked bigint[];
    _now timestamptz;
    _decided decided_reply[];
BEGIN
    SELECT array_agg(o.workspace_id) AS workspaces, array_agg(o.chat_id) AS chats, array_agg(o.lease_token) AS tokens,
           array_agg(CASE WHEN o.result = 'failed' THEN o.workspace_id END) AS failed_in,
           bool_and(o.result IS NOT NULL AND o.result IN ('sent', 'failed', 'released')) AS is_known
    INTO _given
    FROM ROWS FROM (jsonb_to_recordset(p_outcomes) AS (
        workspace_id uuid, chat_id text, lease_token uuid, result text)) AS o;
    IF NOT _given.is_known THEN
        RAISE EXCEPTION 'the result of a reply is sent, failed or released' USING ERRCODE = 'AP001';
    END IF;
    _groups := lock_reply_groups(
        _given.failed_in || ARRAY(SELECT DISTINCT d FROM circuits_in_doubt(_given.workspaces) AS d));
    _locked := lock_chats(_given.workspaces, _given.chats, _given.tokens);
    _now := clock_timestamp();
    _decided := decide_replies(p_outcomes, _locked, p_jitter, _now);

    INSERT INTO events (workspace_id, ts, action, result, attempt, error, meta)
    SELECT d.workspace_id, _now,
           CASE d.status WHEN 'sent' THEN 'bot_replied' ELSE 'bot_reply_failed' END::event_action,
           CASE d.status WHEN 'sent' THEN 'ok' ELSE 'error' END::event_result, d.attempt, d.error,
           event_meta(d.trace_id, p_run_id, jsonb_build_object(
               'chat', chat_token(d.workspace_id, d.chat_id), 'reply_id', d.reply_id))
    FROM unnest(_decided) AS d
    WHERE d.status IN ('sent', 'failed');

    RETURN QUERY
    WITH following AS MATERIALIZED ( -- an update that is being stored waits for the row of the chat
        SELECT d.*, c.seq + (d.status = 'sent')::int AS seq,
               CASE WHEN d.status = 'retry' THEN d.retry_at
                    WHEN b.next_attempt_at IS NOT NULL THEN b.next_attempt_at
                    WHEN i.ts IS NOT NULL THEN _now END AS due_at
        FROM unnest(_decided) AS d
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT c.seq
            FROM bot_chats c
            WHERE c.workspace_id = d.workspace_id
              AND c.chat_id = d.chat_id
            OFFSET 0
        ) AS c
        LEFT JOIN LATERAL (
            SELECT b.next_attempt_at
            FROM bot_outbox b
            WHERE b.workspace_id = d.workspace_id
              AND b.chat_id = d.chat_id
              AND b.sent_at IS NULL
              AND b.failed_at IS NULL
              AND b.inbound_provider_message_id IS DISTINCT FROM d.key
            ORDER BY b.place
            LIMIT 1
        ) AS b ON true
        LEFT JOIN LATERAL (
            SELECT i.ts
            FROM bot_inbox i
            WHERE i.workspace_id = d.workspace_id
              AND i.chat_id = d.chat_id
              AND i.processed_at IS NULL
            ORDER BY i.provider_ts, i.provider_seq, i.ts -- as the index has them
            LIMIT 1
        ) AS i ON true
    ), ended AS (
        UPDATE bot_outbox b
        SET slot_at = NULL,
            attempt = CASE WHEN f.result = 'released' AND b.slot_at IS NOT NULL THEN b.attempt - 1 ELSE b.attempt END,
            sent_at = CASE WHEN f.status = 'sent' THEN _now END,
            failed_at = CASE WHEN f.status = 'failed' THEN _now END,
            next_attempt_at = coalesce(f.retry_at, b.next_attempt_at),
            provider_message_id = f.provider_message_id,
            response = CASE WHEN f.status = 'sent' THEN b.response || jsonb_build_object('progress', f.parts)
                            ELSE b.response END,
            last_error = CASE WHEN f.result = 'released' THEN b.last_error ELSE f.stored_error END,
            seq = CASE WHEN f.status = 'sent' THEN f.seq END
        FROM following f
        WHERE b.workspace_id = f.workspace_id
          AND b.chat_id = f.chat_id
          AND b.inbound_provider_message_id = f.key
    )
    UPDATE bot_chats c
    SET seq = coalesce(f.seq, c.seq),
        changed_at = CASE WHEN f.status = 'sent' THEN _now ELSE c.changed_at END,
        stopped_at = CASE WHEN f.status = 'failed' AND f.code = 'chat_denied' THEN coalesce(c.stopped_at, _now)
                          ELSE c.stopped_at END,
        due_at = f.due_at,
        lease_token = NULL,
        lease_until = NULL,
        takes = 0
    FROM following f
    WHERE c.workspace_id = f.workspace_id
      AND c.chat_id = f.chat_id
    RETURNING f.place, 'committed', CASE WHEN f.status = 'sent' THEN c.seq END, coalesce(f.status = 'failed', false),
              coalesce(c.due_at <= clock_timestamp(), false);
    RETURN QUERY
    SELECT o.nth::bigint, 'stale', NULL::bigint, false, false
    FROM generate_series(1, cardinality(_given.chats)) AS o (nth)
    WHERE o.nth <> ALL (_locked);

    PERFORM settle_reply_circuit(
        g.workspace_id, ARRAY(SELECT d FROM unnest(_decided) AS d WHERE d.workspace_id = g.workspace_id AND d.key IS NOT NULL),
        g.place, p_run_id, _now)
    FROM unnest(_groups.workspaces, _groups.places) AS g (workspace_id, place);
END $$;
