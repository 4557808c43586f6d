-- turn_bot_reply(workspace_id, reply_id, decision, operator, reason) -> verdict
--
-- By hand, for a reply that is not sent.
--
-- decision  retry  a failed reply gets five more attempts, now
--           skip   a waiting reply is given up, and the chat goes on with the next update
-- Verdicts  retried, skipped
--           under_way  a worker has the chat; its result comes first
--           sent, failed, waiting   nothing to do: it is in this state
--           not_found
-- Appends   config_changed, with skip also bot_reply_failed with the code manual_skip
-- Locks     bot_chats, bot_outbox by key
-- Raises    AP010 without operator or reason, AP011 for another decision
CREATE OR REPLACE FUNCTION turn_bot_reply(
    p_workspace_id uuid,
    p_reply_id uuid,
    p_decision text,
    p_operator text,
    p_reason text
)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _reply bot_outbox;
    _status text;
    _chat text;
BEGIN
    IF p_decision NOT IN ('retry', 'skip') THEN
        RAISE EXCEPTION 'decision must be retry or skip' USING ERRCODE = 'AP011';
    END IF;
    PERFORM 1
    FROM bot_chats c
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id IN (
          SELECT b.chat_id
          FROM bot_outbox b
          WHERE b.workspace_id = p_workspace_id
            AND b.reply_id = p_reply_id
      )
    FOR NO KEY UPDATE;
    SELECT b.*
    INTO _reply
    FROM bot_outbox b
    WHERE b.workspace_id = p_workspace_id
      AND b.reply_id = p_reply_id
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'not_found';
    END IF;
    _status := CASE WHEN _reply.sent_at IS NOT NULL THEN 'sent'
                    WHEN _reply.failed_at IS NOT NULL THEN 'failed'
                    ELSE 'waiting' END;
    IF (p_decision, _status) NOT IN (('retry', 'failed'), ('skip', 'waiting')) THEN
        RETURN _status;
    END IF;
    IF EXISTS (
        SELECT 1
        FROM bot_chats c
        WHERE c.workspace_id = p_workspace_id
          AND c.chat_id = _reply.chat_id
          AND c.lease_until > clock_timestamp()
    ) THEN
        RETURN 'under_way';
    END IF;

    _chat := chat_token(p_workspace_id, _reply.chat_id);
    UPDATE bot_outbox b
    SET failed_at = CASE p_decision WHEN 'skip' THEN clock_timestamp() END,
        attempt = CASE p_decision WHEN 'retry' THEN 0 ELSE b.attempt END,
        next_attempt_at = clock_timestamp(),
        slot_at = NULL
    WHERE b.workspace_id = p_workspace_id
      AND b.reply_id = p_reply_id;
    INSERT INTO events (workspace_id, action, result, error, meta)
    SELECT p_workspace_id, 'bot_reply_failed', 'error', jsonb_build_object('code', 'manual_skip'), event_meta(_reply.trace_id, NULL, _signature
        || jsonb_build_object('chat', _chat, 'reply_id', p_reply_id, 'code', 'manual_skip'))
    WHERE p_decision = 'skip';
    INSERT INTO events (workspace_id, action, meta)
    VALUES (p_workspace_id, 'config_changed', event_meta(_reply.trace_id, NULL, _signature || jsonb_build_object(
        'what', 'bot_outbox', 'chat', _chat, 'reply_id', p_reply_id, 'was', _status, 'is', p_decision)));
    PERFORM settle_chats(ARRAY[p_workspace_id], ARRAY[_reply.chat_id]);
    RETURN CASE p_decision WHEN 'retry' THEN 'retried' ELSE 'skipped' END;
END $$;
