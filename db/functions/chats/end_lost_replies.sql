-- end_lost_replies(workspace_ids, chat_ids, now)
--
-- Replies that were being sent when the lease of their chat ended: nobody knows whether they arrived. They are looked
-- for before they are sent again. One whose last attempt this was has failed. The arrays go row by row.
--
-- Appends   bot_reply_failed
-- Locks     bot_outbox by key; bot_chats are held by the caller
CREATE OR REPLACE FUNCTION end_lost_replies(p_workspace_ids uuid[], p_chat_ids text[], p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _error jsonb := '{"category": "TRANSIENT", "code": "lease_expired", "ambiguous": true}';
BEGIN
    WITH lost AS (
        UPDATE bot_outbox b
        SET slot_at = NULL,
            last_error = _error,
            failed_at = CASE WHEN b.attempt >= p.max_attempts THEN p_now END,
            next_attempt_at = p_now
        FROM current_policy() AS p, unnest(p_workspace_ids, p_chat_ids) AS c (workspace_id, chat_id)
        WHERE b.workspace_id = c.workspace_id
          AND b.chat_id = c.chat_id
          AND b.sent_at IS NULL
          AND b.failed_at IS NULL
          AND b.slot_at IS NOT NULL
        RETURNING b.workspace_id, b.chat_id, b.reply_id, b.attempt, b.trace_id, b.failed_at
    )
    INSERT INTO events (workspace_id, ts, action, result, attempt, error, meta)
    SELECT l.workspace_id, p_now, 'bot_reply_failed', 'error', l.attempt, _error,
           event_meta(l.trace_id, NULL, jsonb_build_object(
               'chat', chat_token(l.workspace_id, l.chat_id), 'reply_id', l.reply_id))
    FROM lost l
    WHERE l.failed_at IS NOT NULL;
END $$;
