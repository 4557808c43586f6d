-- move_deliveries(moves, now)
--
-- Moves deliveries to their next state and clears their claim, in one statement.
--
-- moves     at most one per delivery. The caller holds each delivery and appends the events that it counts.
--           Rows are found by place alone: with a second condition an outdated plan would read the whole table.
-- Changes   deliveries, and the tables of their triggers
-- Locks     deliveries by place: held by the caller
CREATE OR REPLACE FUNCTION move_deliveries(p_moves delivery_move[], p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    UPDATE deliveries d
    SET status = m.status,
        sent_at = CASE WHEN m.status = 'sent' THEN p_now END,
        provider_message_id = coalesce(m.provider_message_id, d.provider_message_id),
        next_retry_at = m.next_retry_at,
        hold_reason = m.hold_reason,
        max_attempts = coalesce(m.max_attempts, d.max_attempts),
        last_error = coalesce(m.last_error, d.last_error),
        claimed_at = NULL,
        claim_token = NULL,
        sending_started_at = NULL,
        sending_lease_until = NULL,
        event_count = d.event_count + m.events,
        updated_at = p_now
    FROM unnest(p_moves) AS m
    WHERE d.ctid = m.row_place;
END $$;
