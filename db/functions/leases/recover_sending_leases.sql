-- recover_sending_leases(workspace_id, now, limit, jitter) -> how many deliveries were taken back from silent workers
--
-- An expired lease says nothing about what the provider did. So it counts as an ambiguous failure: retry_decision says
-- what follows and retry_delay says when. attempt does not change. When the caller gives `now`, the event says so
-- (as_of).
--
-- Changes      sending -> retry | dead
-- Appends      sending_lease_expired, and dead_letter or held
-- Locks        deliveries, SKIP LOCKED: a commit in progress wins
CREATE OR REPLACE FUNCTION recover_sending_leases(
    p_workspace_id uuid,
    p_now timestamptz DEFAULT NULL,
    p_limit int DEFAULT 1000,
    p_jitter double precision DEFAULT NULL
)
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _error CONSTANT jsonb := '{"category": "TRANSIENT", "scope": "delivery", "code": "lease_expired", "ambiguous": true}';
    _now timestamptz := coalesce(p_now, clock_timestamp());
    _moves delivery_move[];
BEGIN
    _moves := ARRAY(
        SELECT (d.row_place,
                CASE n.decision WHEN 'dead' THEN 'dead' ELSE 'retry' END,
                CASE n.decision
                    WHEN 'hold' THEN 'infinity'
                    WHEN 'retry' THEN _now + retry_delay(d.attempt, NULL, NULL, d.policy, coalesce(p_jitter, random()))
                END,
                CASE n.decision WHEN 'hold' THEN 'lease_expired' END,
                NULL, NULL, _error,
                CASE n.decision WHEN 'retry' THEN 1 ELSE 2 END)::delivery_move
        FROM (
            SELECT t.delivery_id
            FROM taken_deliveries(p_workspace_id) AS t
            WHERE t.status = 'sending'
              AND coalesce(t.lease_until, '-infinity') < _now
            ORDER BY t.delivery_id
        ) AS t
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT d.ctid AS row_place, d.channel_id, d.attempt, d.max_attempts, d.policy,
                   d.cancel_request IS NOT NULL AS cancel_asked
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = t.delivery_id
              AND d.status = 'sending'
              AND coalesce(d.sending_lease_until, '-infinity') < _now
            FOR UPDATE SKIP LOCKED
        ) AS d
        CROSS JOIN LATERAL (
            SELECT c.on_ambiguous
            FROM channels c
            WHERE c.workspace_id = p_workspace_id
              AND c.channel_id = d.channel_id
            OFFSET 0
        ) AS c
        CROSS JOIN LATERAL (
            SELECT retry_decision('TRANSIENT', NULL, true, c.on_ambiguous, d.attempt, d.max_attempts, d.policy,
                                  d.cancel_asked) AS decision
        ) AS n
        LIMIT p_limit
    );

    -- Before the move: it clears the lease that the events name.
    INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, result, error, meta)
    SELECT p_workspace_id, d.delivery_id, d.message_id, d.channel_id, a.action, d.attempt, 'error', _error,
           event_meta(d.trace_id, NULL, jsonb_build_object(
               'lease_until', d.sending_lease_until, 'next_retry_at', nullif(m.next_retry_at, 'infinity'),
               'as_of', p_now))
    FROM unnest(_moves) AS m
    JOIN deliveries d ON d.ctid = m.row_place
    CROSS JOIN LATERAL (
        SELECT 1 AS n, 'sending_lease_expired'::event_action AS action
        UNION ALL
        SELECT 2, 'dead_letter' WHERE m.status = 'dead'
        UNION ALL
        SELECT 2, 'held' WHERE m.hold_reason IS NOT NULL
    ) AS a
    ORDER BY d.delivery_id, a.n;

    PERFORM move_deliveries(_moves, _now);
    RETURN cardinality(_moves);
END $$;
