-- recover_claimed_leases(workspace_id, now, lease, limit) -> how many deliveries claimed by hand went back to the queue
--
-- Claims of the dispatcher go straight to sending; `claimed` is for manual flows. Such a claim expires `lease` after
-- claimed_at, and not before the delivery was due. attempt does not change.
--
-- Changes      claimed -> queued
-- Appends      claimed_lease_expired
-- Locks        deliveries, SKIP LOCKED
CREATE OR REPLACE FUNCTION recover_claimed_leases(
    p_workspace_id uuid,
    p_now timestamptz DEFAULT NULL,
    p_lease interval DEFAULT '300 seconds',
    p_limit int DEFAULT 1000
)
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _now timestamptz := coalesce(p_now, clock_timestamp());
    _moves delivery_move[];
BEGIN
    _moves := ARRAY(
        SELECT (d.row_place, 'queued', d.next_retry_at, d.hold_reason, NULL, NULL, NULL, 1)::delivery_move
        FROM (
            SELECT q.delivery_id
            FROM delivery_queue q
            WHERE q.workspace_id = p_workspace_id
              AND q.by_hand
            ORDER BY q.delivery_id
        ) AS q
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT d.ctid AS row_place, d.next_retry_at, d.hold_reason
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = q.delivery_id
              AND d.status = 'claimed'
              AND d.not_before <= _now
              AND coalesce(d.claimed_at, '-infinity') < _now - p_lease
            FOR UPDATE SKIP LOCKED
        ) AS d
        LIMIT p_limit
    );

    -- Before the move: it clears the claim that the events name.
    INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, result, meta)
    SELECT p_workspace_id, d.delivery_id, d.message_id, d.channel_id, 'claimed_lease_expired', d.attempt, 'error',
           event_meta(d.trace_id, NULL, jsonb_build_object('claimed_at', d.claimed_at))
    FROM unnest(_moves) AS m
    JOIN deliveries d ON d.ctid = m.row_place;

    PERFORM move_deliveries(_moves, _now);
    RETURN cardinality(_moves);
END $$;
