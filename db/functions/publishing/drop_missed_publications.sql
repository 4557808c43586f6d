-- drop_missed_publications(limit) -> how many were paused because their time is long past
--
-- A delivery that waited longer than late_after, behind a paused channel or workspace, is not sent any more: an old time
-- is no time to advertise. One that was tried goes on: it is being retried, not waiting.
--
-- Changes   queued -> failed_permanent, code catch_up_dropped; the publication follows: paused, missed
-- Appends   catch_up_dropped, publication_paused
-- Locks     deliveries SKIP LOCKED, publications
CREATE OR REPLACE FUNCTION drop_missed_publications(p_limit int)
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _now timestamptz := clock_timestamp();
    _dropped int;
BEGIN
    WITH missed AS MATERIALIZED (
        SELECT d.workspace_id, d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id
        FROM (
            SELECT p.workspace_id, p.delivery_id
            FROM publications p
            WHERE p.status = 'publishing'
              AND p.delivery_id IS NOT NULL
              AND p.scheduled_at + p.late_after < _now
            ORDER BY p.workspace_id, p.delivery_id
            LIMIT p_limit
        ) AS p
        CROSS JOIN LATERAL (
            SELECT d.*
            FROM deliveries d
            WHERE d.workspace_id = p.workspace_id
              AND d.delivery_id = p.delivery_id
              AND d.status = 'queued'
            FOR UPDATE SKIP LOCKED
        ) AS d
    ), told AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT m.workspace_id, m.delivery_id, m.message_id, m.channel_id, 'catch_up_dropped', m.attempt,
               event_meta(m.trace_id, NULL, '{"from_status": "queued", "catch_up": {"policy": "late_after"}}')
        FROM missed m
    )
    UPDATE deliveries d
    SET status = 'failed_permanent',
        last_error = jsonb_build_object('category', 'PERMANENT', 'scope', 'delivery', 'code', 'catch_up_dropped'),
        event_count = d.event_count + 1,
        updated_at = _now
    FROM missed m
    WHERE d.workspace_id = m.workspace_id
      AND d.delivery_id = m.delivery_id;
    GET DIAGNOSTICS _dropped = ROW_COUNT;
    RETURN _dropped;
END $$;
