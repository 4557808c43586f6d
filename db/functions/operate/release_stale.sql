-- release_stale(workspace_id, operator, reason, force) -> the deliveries taken back, each with what became of it
--
-- For an emergency: deliveries that workers hold and will not finish are due in 15 s. The workers' own results are
-- stale from then on. The monitor does the same by itself, later: recover_sending_leases.
--
-- force        also deliveries whose lease has not expired: only when their worker is known to be gone
-- Verdicts     released    due in 15 s
--              held        it may have been sent, and its channel wants an operator to decide: resolve_ambiguous
-- Changes      claimed | sending -> retry. attempt is not touched; one more attempt is allowed where none was left.
-- Appends      manual_requeue, reason manual_stuck_release (the operator's own is in `note`); held
-- Locks        deliveries by key, waiting for a commit that has begun: it wins
-- Raises       AP010 without operator or reason.
CREATE OR REPLACE FUNCTION release_stale(
    p_workspace_id uuid,
    p_operator text,
    p_reason text,
    p_force boolean DEFAULT false,
    p_claimed_lease interval DEFAULT '300 seconds'
)
RETURNS TABLE (delivery_id uuid, channel_id uuid, was delivery_status, attempt int, verdict text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _error CONSTANT jsonb := '{"category": "TRANSIENT", "scope": "delivery", "code": "manual_stuck_release",
                               "ambiguous": true}';
    _now timestamptz := clock_timestamp();
    _moves delivery_move[];
BEGIN
    _moves := ARRAY(
        SELECT (d.row_place, 'retry',
                CASE n.decision WHEN 'hold' THEN 'infinity' ELSE _now + interval '15 seconds' END,
                CASE n.decision WHEN 'hold' THEN 'manual_stuck_release' END,
                greatest(d.max_attempts, d.attempt + 1),
                NULL,
                CASE d.status WHEN 'sending' THEN _error END,
                CASE n.decision WHEN 'hold' THEN 2 ELSE 1 END)::delivery_move
        FROM (SELECT t.delivery_id FROM taken_deliveries(p_workspace_id) AS t ORDER BY t.delivery_id) AS t
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT d.ctid AS row_place, d.status, d.channel_id, d.attempt, d.max_attempts, d.policy,
                   d.status = 'sending' AND d.cancel_request IS NOT NULL AS cancel_asked
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = t.delivery_id
              AND CASE d.status
                  WHEN 'sending' THEN p_force OR coalesce(d.sending_lease_until, '-infinity') < _now
                  WHEN 'claimed' THEN p_force OR (d.not_before <= _now
                                                  AND coalesce(d.claimed_at, '-infinity') < _now - p_claimed_lease)
                  ELSE false
              END
            FOR UPDATE
        ) AS d
        CROSS JOIN LATERAL (
            SELECT c.on_ambiguous
            FROM channels c
            WHERE c.workspace_id = p_workspace_id
              AND c.channel_id = d.channel_id
            OFFSET 0
        ) AS c
        CROSS JOIN LATERAL ( -- another attempt is always allowed, so the decision is never 'dead'
            SELECT retry_decision('TRANSIENT', NULL, d.status = 'sending', c.on_ambiguous, d.attempt, d.attempt + 1,
                                  d.policy, d.cancel_asked) AS decision
        ) AS n
    );

    -- Before the move: it clears the claim that the events and the answer name.
    INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
    SELECT p_workspace_id, d.delivery_id, d.message_id, d.channel_id, a.action, d.attempt,
           event_meta(d.trace_id, NULL, _signature || jsonb_build_object(
               'reason', 'manual_stuck_release', 'note', _signature ->> 'reason', 'max_attempts', m.max_attempts,
               'from_status', d.status, 'lease_until', d.sending_lease_until, 'claimed_at', d.claimed_at,
               'ambiguous', nullif(d.status = 'sending', false), 'forced', nullif(p_force, false)))
    FROM unnest(_moves) AS m
    JOIN deliveries d ON d.ctid = m.row_place
    CROSS JOIN LATERAL (
        SELECT 1 AS n, 'manual_requeue'::event_action AS action
        UNION ALL
        SELECT 2, 'held' WHERE m.hold_reason IS NOT NULL
    ) AS a
    ORDER BY d.delivery_id, a.n;
    RETURN QUERY
    SELECT d.delivery_id, d.channel_id, d.status, d.attempt,
           CASE WHEN m.hold_reason IS NULL THEN 'released' ELSE 'held' END
    FROM unnest(_moves) AS m
    JOIN deliveries d ON d.ctid = m.row_place
    ORDER BY d.delivery_id;

    PERFORM move_deliveries(_moves, _now);
END $$;
