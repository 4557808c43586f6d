-- recover_sending_leases(workspace_id, now) -> how many deliveries were taken back from workers that went silent
--
-- A lease that ran out says nothing about what the provider did, so it is an ambiguous failure and follows the
-- same policy as one: retry by retry_delay, dead at max_attempts, held where the channel says so.
-- attempt is not touched.
--
-- Changes      sending -> retry | dead
-- Appends      sending_lease_expired, and dead_letter or held
-- Locks        deliveries, SKIP LOCKED: a worker that is committing wins
CREATE OR REPLACE FUNCTION recover_sending_leases(
    p_workspace_id uuid,
    p_now timestamptz DEFAULT NULL,
    p_limit int DEFAULT 1000,
    p_jitter double precision DEFAULT NULL
)
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _now timestamptz := coalesce(p_now, clock_timestamp());
    _recovered int;
BEGIN
    WITH stale AS MATERIALIZED (
        SELECT d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.claim_token,
               d.sending_lease_until,
               CASE
                   WHEN c.on_ambiguous = 'hold' THEN 'retry'
                   WHEN d.attempt >= d.max_attempts THEN 'dead'
                   ELSE 'retry'
               END::delivery_status AS new_status,
               c.on_ambiguous = 'hold' AS on_hold,
               CASE
                   WHEN c.on_ambiguous = 'hold' THEN 'infinity'
                   WHEN d.attempt < d.max_attempts
                       THEN _now + retry_delay(d.attempt, NULL, NULL, d.policy, coalesce(p_jitter, random()))
               END::timestamptz AS retry_at
        FROM delivery_queue q
        JOIN deliveries d
          ON d.workspace_id = q.workspace_id
         AND d.delivery_id = q.delivery_id
        JOIN channels c
          ON c.workspace_id = d.workspace_id
         AND c.channel_id = d.channel_id
        WHERE q.workspace_id = p_workspace_id
          AND q.claim_token IS NOT NULL
          AND coalesce(q.lease_until, '-infinity') < _now
          AND d.status = 'sending'
          AND coalesce(d.sending_lease_until, '-infinity') < _now
        ORDER BY d.delivery_id
        LIMIT p_limit
        FOR UPDATE OF d SKIP LOCKED
    ), moved AS (
        UPDATE deliveries d
        SET status = s.new_status,
            next_retry_at = s.retry_at,
            hold_reason = CASE WHEN s.on_hold THEN 'lease_expired' END,
            last_error = jsonb_build_object('category', 'TRANSIENT', 'scope', 'delivery', 'code', 'lease_expired',
                                            'ambiguous', true),
            claimed_at = NULL,
            claim_token = NULL,
            sending_started_at = NULL,
            sending_lease_until = NULL,
            event_count = d.event_count + CASE WHEN s.on_hold OR s.new_status = 'dead' THEN 2 ELSE 1 END,
            updated_at = _now
        FROM stale s
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = s.delivery_id
    ), told AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, result, error, meta)
        SELECT p_workspace_id, s.delivery_id, s.message_id, s.channel_id, a.action, s.attempt, 'error',
               jsonb_build_object('code', 'lease_expired', 'category', 'TRANSIENT', 'scope', 'delivery',
                                  'ambiguous', true),
               event_meta(s.trace_id, NULL, jsonb_build_object(
                   'lease_until', s.sending_lease_until, 'next_retry_at', nullif(s.retry_at, 'infinity')))
        FROM stale s
        CROSS JOIN LATERAL (
            SELECT 1 AS n, 'sending_lease_expired'::event_action AS action
            UNION ALL
            SELECT 2, 'dead_letter' WHERE s.new_status = 'dead'
            UNION ALL
            SELECT 2, 'held' WHERE s.on_hold
        ) AS a
        ORDER BY s.delivery_id, a.n
    )
    SELECT count(*) INTO _recovered FROM stale;
    RETURN _recovered;
END $$;
