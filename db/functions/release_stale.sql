-- release_stale(workspace_id, operator, reason, force) -> the deliveries taken back, each with what became of it
--
-- For an emergency: what workers hold and will not finish comes back in 15 s. The workers' own results are stale
-- from then on. The monitor does the same by itself, more patiently: recover_sending_leases.
--
-- force        also what is held by a lease that still runs: only when its worker is known to be gone
-- Verdicts     released    due in 15 s
--              held        it may have been sent, and its channel wants a human to decide: resolve_ambiguous
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
AS $$
#variable_conflict use_column
DECLARE
    _signature jsonb := signed_by(p_operator, p_reason);
    _now timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
    WITH stale AS MATERIALIZED (
        SELECT d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.status AS was,
               d.sending_lease_until, d.claimed_at, greatest(d.max_attempts, d.attempt + 1) AS max_attempts,
               d.status = 'sending' AND c.on_ambiguous = 'hold' AS on_hold
        FROM delivery_queue q
        JOIN deliveries d
          ON d.workspace_id = q.workspace_id
         AND d.delivery_id = q.delivery_id
        JOIN channels c
          ON c.workspace_id = d.workspace_id
         AND c.channel_id = d.channel_id
        WHERE q.workspace_id = p_workspace_id
          AND q.claim_token IS NOT NULL
          AND CASE d.status
              WHEN 'sending' THEN p_force OR coalesce(d.sending_lease_until, '-infinity') < _now
              WHEN 'claimed' THEN p_force OR (d.not_before <= _now
                                              AND coalesce(d.claimed_at, '-infinity') < _now - p_claimed_lease)
              ELSE false
          END
        ORDER BY d.delivery_id
        FOR UPDATE OF d
    ), moved AS (
        UPDATE deliveries d
        SET status = 'retry',
            next_retry_at = CASE WHEN s.on_hold THEN 'infinity' ELSE _now + interval '15 seconds' END,
            hold_reason = CASE WHEN s.on_hold THEN 'manual_stuck_release' END,
            max_attempts = s.max_attempts,
            last_error = CASE
                WHEN s.was = 'claimed' THEN d.last_error
                ELSE jsonb_build_object('category', 'TRANSIENT', 'scope', 'delivery', 'code', 'manual_stuck_release',
                                        'ambiguous', true)
            END,
            claimed_at = NULL,
            claim_token = NULL,
            sending_started_at = NULL,
            sending_lease_until = NULL,
            event_count = d.event_count + CASE WHEN s.on_hold THEN 2 ELSE 1 END,
            updated_at = _now
        FROM stale s
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = s.delivery_id
    ), told AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT p_workspace_id, s.delivery_id, s.message_id, s.channel_id, a.action, s.attempt,
               event_meta(s.trace_id, NULL, _signature || jsonb_build_object(
                   'reason', 'manual_stuck_release', 'note', _signature ->> 'reason', 'max_attempts', s.max_attempts,
                   'from_status', s.was, 'lease_until', s.sending_lease_until, 'claimed_at', s.claimed_at,
                   'ambiguous', nullif(s.was = 'sending', false), 'forced', nullif(p_force, false)))
        FROM stale s
        CROSS JOIN LATERAL (
            SELECT 1 AS n, 'manual_requeue'::event_action AS action
            UNION ALL
            SELECT 2, 'held' WHERE s.on_hold
        ) AS a
        ORDER BY s.delivery_id, a.n
    )
    SELECT s.delivery_id, s.channel_id, s.was, s.attempt, CASE WHEN s.on_hold THEN 'held' ELSE 'released' END
    FROM stale s
    ORDER BY s.delivery_id;
END $$;
