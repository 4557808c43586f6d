-- drop_excess(workspace_id, channel_ids, message_ids, run_id, signature, now) -> {channel_id: how many}, null for none
--
-- Drops what the catch-up policies of these channels exclude, of the messages that lock_excess has locked.
--
-- Changes   queued | retry -> failed_permanent, code catch_up_dropped; attempt is not touched
-- Appends   catch_up_dropped per delivery (result ok: nothing failed), with the signature
-- Locks     deliveries by key; the caller holds the channels
CREATE OR REPLACE FUNCTION drop_excess(
    p_workspace_id uuid,
    p_channel_ids uuid[],
    p_message_ids uuid[],
    p_run_id uuid,
    p_signature jsonb,
    p_now timestamptz
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _dropped jsonb;
BEGIN
    WITH excess AS MATERIALIZED (
        SELECT d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.status, x.last_seen_at, x.policy
        FROM catch_up_excess(p_workspace_id, p_channel_ids, p_now) AS x
        JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.delivery_id = x.delivery_id
        WHERE d.status IN ('queued', 'retry')
          AND x.message_id IN (SELECT unnest(p_message_ids))
        ORDER BY d.delivery_id
        FOR UPDATE OF d
    ), moved AS (
        UPDATE deliveries d
        SET status = 'failed_permanent',
            next_retry_at = NULL,
            hold_reason = NULL,
            last_error = jsonb_build_object('category', 'PERMANENT', 'scope', 'delivery', 'code', 'catch_up_dropped'),
            event_count = d.event_count + 1,
            updated_at = p_now
        FROM excess x
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = x.delivery_id
    ), told AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT p_workspace_id, x.delivery_id, x.message_id, x.channel_id, 'catch_up_dropped', x.attempt,
               event_meta(x.trace_id, p_run_id, p_signature || jsonb_build_object(
                   'from_status', x.status, 'catch_up', x.policy, 'last_seen_at', x.last_seen_at))
        FROM excess x
        ORDER BY x.delivery_id
    )
    SELECT jsonb_object_agg(n.channel_id, n.dropped)
    INTO _dropped
    FROM (SELECT x.channel_id, count(*) AS dropped FROM excess x GROUP BY x.channel_id) AS n;
    RETURN _dropped;
END $$;
