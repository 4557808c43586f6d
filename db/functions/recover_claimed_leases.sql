-- recover_claimed_leases(workspace_id, now) -> how many deliveries claimed by hand and forgotten were put back
--
-- Our claims go straight to sending; `claimed` is for manual flows, and it is stale only once it was due.
-- Changes      claimed -> queued;  Appends claimed_lease_expired;  attempt is not touched.
CREATE OR REPLACE FUNCTION recover_claimed_leases(
    p_workspace_id uuid,
    p_now timestamptz DEFAULT NULL,
    p_lease interval DEFAULT '300 seconds',
    p_limit int DEFAULT 1000
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
        SELECT d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.claimed_at
        FROM delivery_queue q
        JOIN deliveries d
          ON d.workspace_id = q.workspace_id
         AND d.delivery_id = q.delivery_id
        WHERE q.workspace_id = p_workspace_id
          AND q.claim_token IS NOT NULL
          AND d.status = 'claimed'
          AND d.not_before <= _now
          AND coalesce(d.claimed_at, '-infinity') < _now - p_lease
        ORDER BY d.delivery_id
        LIMIT p_limit
        FOR UPDATE OF d SKIP LOCKED
    ), moved AS (
        UPDATE deliveries d
        SET status = 'queued',
            claimed_at = NULL,
            claim_token = NULL,
            event_count = d.event_count + 1,
            updated_at = _now
        FROM stale s
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = s.delivery_id
    ), told AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, result, meta)
        SELECT p_workspace_id, s.delivery_id, s.message_id, s.channel_id, 'claimed_lease_expired', s.attempt, 'error',
               event_meta(s.trace_id, NULL, jsonb_build_object('claimed_at', s.claimed_at))
        FROM stale s
    )
    SELECT count(*) INTO _recovered FROM stale;
    RETURN _recovered;
END $$;
