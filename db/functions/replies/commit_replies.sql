-- commit_replies(workspace_id, outcomes, jitter, run_id) -> one verdict per outcome
--
-- Records how the sending of replies ended and gives their chats back.
--
-- outcomes     [{"chat_id", "lease_token", "result": "sent" | "failed" | "released", …}]
--              sent      provider_message_id, parts: the message ids of each part
--              failed    category, scope, code, message, retry_after_ms, ambiguous, answered
--              released  given back unsent, without a call: costs no attempt. retry_after_ms: when to look again
-- Verdicts     committed
--              stale     the token is not the current one: nothing is changed, the caller drops its result
-- more         there is more to do in the chat now
-- Changes      sent -> sent_at. TRANSIENT with attempts left -> retried after retry_delay; else -> failed_at. A customer
--              who has stopped the bot (chat_denied) marks the chat. The rate group's gate and circuit as after posts
-- Appends      bot_replied | bot_reply_failed, group_opened, group_closed
-- Steps        lock_chats, settle_reply_circuit, settle_chats
-- Locks        platform_limits (only when an outcome concerns it), bot_chats, bot_outbox: in that order, each by key
-- Raises       AP001 for an unknown result
CREATE OR REPLACE FUNCTION commit_replies(
    p_workspace_id uuid,
    p_outcomes jsonb,
    p_jitter double precision DEFAULT NULL,
    p_run_id uuid DEFAULT NULL
)
RETURNS TABLE (chat_id text, verdict text, seq bigint, failed boolean, more boolean)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _group tid;
    _chats text[];
    _now timestamptz;
    _decided decided_reply[];
    _more text[];
BEGIN
    IF jsonb_path_exists(p_outcomes, '$[*] ? (!(@.result == "sent" || @.result == "failed" || @.result == "released"))') THEN
        RAISE EXCEPTION 'the result of a reply is sent, failed or released' USING ERRCODE = 'AP001';
    END IF;
    _group := lock_reply_group(p_workspace_id, p_outcomes);
    _chats := lock_chats(
        p_workspace_id,
        ARRAY(SELECT o ->> 'chat_id' FROM jsonb_array_elements(p_outcomes) AS o),
        ARRAY(SELECT (o ->> 'lease_token')::uuid FROM jsonb_array_elements(p_outcomes) AS o));
    _now := clock_timestamp();
    _decided := decide_replies(p_workspace_id, p_outcomes, _chats, p_jitter, _now);

    WITH ended AS (
        UPDATE bot_outbox b
        SET slot_at = NULL,
            attempt = CASE WHEN d.result = 'released' AND b.slot_at IS NOT NULL THEN b.attempt - 1 ELSE b.attempt END,
            sent_at = CASE WHEN d.status = 'sent' THEN _now END,
            failed_at = CASE WHEN d.status = 'failed' THEN _now END,
            next_attempt_at = coalesce(d.retry_at, b.next_attempt_at),
            provider_message_id = d.provider_message_id,
            response = CASE WHEN d.status = 'sent' THEN b.response || jsonb_build_object('progress', d.parts)
                            ELSE b.response END,
            last_error = CASE WHEN d.result = 'released' THEN b.last_error ELSE d.stored_error END,
            seq = CASE WHEN d.status = 'sent' THEN c.seq + 1 END
        FROM unnest(_decided) AS d
        JOIN bot_chats c
          ON c.workspace_id = p_workspace_id
         AND c.chat_id = d.chat_id
        WHERE b.workspace_id = p_workspace_id
          AND b.chat_id = d.chat_id
          AND b.inbound_provider_message_id = d.key
        RETURNING b.chat_id, b.seq
    )
    UPDATE bot_chats c
    SET seq = coalesce(e.seq, c.seq),
        changed_at = CASE WHEN e.seq IS NULL THEN c.changed_at ELSE _now END,
        stopped_at = CASE WHEN d.status = 'failed' AND d.code = 'chat_denied' THEN coalesce(c.stopped_at, _now)
                          ELSE c.stopped_at END
    FROM ended e
    JOIN unnest(_decided) AS d ON d.chat_id = e.chat_id
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = e.chat_id;

    INSERT INTO events (workspace_id, ts, action, result, attempt, error, meta)
    SELECT p_workspace_id, _now,
           CASE d.status WHEN 'sent' THEN 'bot_replied' ELSE 'bot_reply_failed' END::event_action,
           CASE d.status WHEN 'sent' THEN 'ok' ELSE 'error' END::event_result, d.attempt, d.error,
           event_meta(d.trace_id, p_run_id, jsonb_build_object(
               'chat', chat_token(p_workspace_id, d.chat_id), 'reply_id', d.reply_id))
    FROM unnest(_decided) AS d
    WHERE d.status IN ('sent', 'failed');

    IF _group IS NOT NULL THEN
        PERFORM settle_reply_circuit(p_workspace_id, _decided, _group, p_run_id, _now);
    END IF;
    _more := ARRAY(SELECT s FROM settle_chats(p_workspace_id, _chats) AS s);

    RETURN QUERY
    SELECT o ->> 'chat_id', CASE WHEN o ->> 'chat_id' = ANY (_chats) THEN 'committed' ELSE 'stale' END,
           CASE WHEN d.status = 'sent' THEN c.seq END, coalesce(d.status = 'failed', false),
           o ->> 'chat_id' = ANY (_more)
    FROM jsonb_array_elements(p_outcomes) WITH ORDINALITY AS o (o, place)
    LEFT JOIN unnest(_decided) AS d ON d.chat_id = o ->> 'chat_id'
    LEFT JOIN bot_chats c
      ON c.workspace_id = p_workspace_id
     AND c.chat_id = d.chat_id
    ORDER BY o.place;
END $$;
