-- cancel_deliveries(workspace_id, delivery_ids, signature, partial) -> one verdict per delivery
--
-- Withdraws deliveries before they are sent.
--
-- signature    who cancels and why, for the event
-- partial      cancel also what has acknowledged parts: they stay in the channel
-- Verdicts     cancelled      it was waiting; no call will be made
--              perhaps_sent   cancelled too, but an earlier call was never answered: the channel may show the post
--              partly_sent    some parts are in the channel: unchanged, unless `partial`
--              too_late       it is being sent: unchanged. The wish is kept, so a call that fails is not repeated
--              already        it has ended; `status` says how
--              not_found
-- Changes      queued | retry -> cancelled; deliveries.cancel_request
-- Appends      cancelled, with the attempt it has, the signature and from_status
-- Locks        messages (the mutex of enqueue: a post with the same content comes before or after), deliveries
--              (lock_deliveries), and their triggers' tables by key
CREATE OR REPLACE FUNCTION cancel_deliveries(
    p_workspace_id uuid,
    p_delivery_ids uuid[],
    p_signature jsonb,
    p_partial boolean DEFAULT false
)
RETURNS TABLE (delivery_id uuid, verdict text, status delivery_status)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
BEGIN
    PERFORM 1
    FROM (
        SELECT m.message_id
        FROM (
            SELECT DISTINCT d.message_id
            FROM unnest(p_delivery_ids) AS asked (delivery_id)
            CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
                SELECT d.message_id
                FROM deliveries d
                WHERE d.workspace_id = p_workspace_id
                  AND d.delivery_id = asked.delivery_id
                OFFSET 0
            ) AS d
        ) AS named
        CROSS JOIN LATERAL (
            SELECT m.message_id, m.hash_version, m.content_hash
            FROM messages m
            WHERE m.workspace_id = p_workspace_id
              AND m.message_id = named.message_id
            OFFSET 0
        ) AS m
        ORDER BY m.hash_version, m.content_hash
    ) AS ordered
    CROSS JOIN LATERAL (
        SELECT 1
        FROM messages m
        WHERE m.workspace_id = p_workspace_id
          AND m.message_id = ordered.message_id
        FOR NO KEY UPDATE
    ) AS locked;

    PERFORM lock_deliveries(p_workspace_id, p_delivery_ids);
    _now := clock_timestamp();

    -- A new statement: it must see what the previous holders of the locks wrote.
    RETURN QUERY
    WITH judged AS MATERIALIZED (
        SELECT asked.delivery_id, d.row_place, d.message_id, d.channel_id, d.attempt, d.trace_id, d.status,
               CASE
                   WHEN d.row_place IS NULL THEN 'not_found'
                   WHEN is_final(d.status) THEN 'already'
                   WHEN d.status IN ('claimed', 'sending') THEN 'too_late'
                   WHEN d.has_parts AND NOT p_partial THEN 'partly_sent'
                   WHEN d.in_doubt THEN 'perhaps_sent'
                   ELSE 'cancelled'
               END AS verdict
        FROM (SELECT DISTINCT unnest(p_delivery_ids) AS delivery_id) AS asked
        LEFT JOIN LATERAL (
            SELECT d.ctid AS row_place, d.message_id, d.channel_id, d.attempt, d.trace_id, d.status,
                   coalesce(jsonb_array_length(d.render_meta #> '{series_progress,sent_items}'), 0) > 0 AS has_parts,
                   d.hold_reason IS NOT NULL OR coalesce(d.last_error @> '{"ambiguous": true}', false) AS in_doubt
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = asked.delivery_id
            OFFSET 0
        ) AS d ON true
    ), changed AS (
        UPDATE deliveries d
        SET status = CASE j.verdict WHEN 'too_late' THEN d.status ELSE 'cancelled' END,
            cancel_request = p_signature,
            next_retry_at = CASE j.verdict WHEN 'too_late' THEN d.next_retry_at END,
            hold_reason = NULL,
            event_count = d.event_count + CASE j.verdict WHEN 'too_late' THEN 0 ELSE 1 END,
            updated_at = _now
        FROM judged j
        WHERE d.ctid = CASE WHEN j.verdict IN ('cancelled', 'perhaps_sent', 'too_late') THEN j.row_place END
    ), told AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT p_workspace_id, j.delivery_id, j.message_id, j.channel_id, 'cancelled', j.attempt,
               event_meta(j.trace_id, NULL, p_signature || jsonb_build_object(
                   'from_status', j.status, 'perhaps_sent', nullif(j.verdict = 'perhaps_sent', false)))
        FROM judged j
        WHERE j.verdict IN ('cancelled', 'perhaps_sent')
        ORDER BY j.delivery_id
    )
    SELECT j.delivery_id, j.verdict,
           CASE WHEN j.verdict IN ('cancelled', 'perhaps_sent') THEN 'cancelled' ELSE j.status END
    FROM judged j
    ORDER BY j.delivery_id;
END $$;
