-- next_audit_events(holder, limit) -> the events to publish next, in order; none when there is nothing to do
--
-- The relay works in windows of transactions that have all ended: lo <= xid < hi, where hi is the oldest one still
-- open. Inside a window the order is that of seq, which is the order in which the events of one delivery were written.
-- A window is stored before its first event is returned, and never changed: after a crash the next holder continues in
-- the same one.
--
-- none      also when another holder has the relay by now
-- Changes   relay_state: opens and closes windows. Only advance_relay moves past events that were returned.
-- Locks     leader_leases, relay_state
CREATE OR REPLACE FUNCTION next_audit_events(p_holder uuid, p_limit int)
RETURNS TABLE (
    seq bigint,
    id uuid,
    workspace_id uuid,
    ts timestamptz,
    action text,
    result text,
    attempt int,
    delivery_id uuid,
    message_id uuid,
    channel_id uuid,
    error jsonb,
    payload_ref text,
    meta jsonb,
    traceparent text
)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _state relay_state;
    _chunk events[];
BEGIN
    IF NOT holds_relay(p_holder) THEN
        RETURN;
    END IF;
    LOOP
        SELECT * INTO _state FROM relay_state WHERE relay = 'audit' FOR UPDATE;
        EXIT WHEN NOT FOUND;
        IF _state.hi = '0' AND _state.sweep_from IS NOT NULL THEN
            PERFORM open_sweep(_state);
            CONTINUE;
        ELSIF _state.hi = '0' OR _state.hi = _state.lo THEN
            EXIT WHEN NOT open_window(_state);
            CONTINUE;
        END IF;
        _chunk := ARRAY(SELECT e FROM window_by_xid(_state, p_limit) AS e WHERE NOT _state.by_seq
                        UNION ALL
                        SELECT e FROM window_by_seq(_state, p_limit) AS e WHERE _state.by_seq);
        EXIT WHEN cardinality(_chunk) > 0;
        PERFORM close_window(_state);
    END LOOP;

    RETURN QUERY
    SELECT e.seq, e.id, e.workspace_id, e.ts, e.action::text, e.result::text, e.attempt, e.delivery_id, e.message_id,
           e.channel_id, e.error, e.payload_ref, e.meta, d.traceparent
    FROM unnest(_chunk) AS e
    LEFT JOIN LATERAL ( -- each by key, whatever the planner estimates
        SELECT d.traceparent
        FROM deliveries d
        WHERE d.workspace_id = e.workspace_id
          AND d.delivery_id = e.delivery_id
        OFFSET 0
    ) AS d ON true
    ORDER BY e.seq;
END $$;
