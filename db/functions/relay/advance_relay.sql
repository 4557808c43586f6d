-- advance_relay(holder, seq, stream_seq) -> whether the cursor moved
--
-- Everything up to `seq` that next_audit_events returned is in the stream, acknowledged; the stream now ends at
-- `stream_seq`.
--
-- false     another holder has the relay by now, and the cursor with it
-- Locks     leader_leases, relay_state
CREATE OR REPLACE FUNCTION advance_relay(p_holder uuid, p_seq bigint, p_stream_seq bigint)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF NOT holds_relay(p_holder) THEN
        RETURN false;
    END IF;
    UPDATE relay_state
    SET seq_done = greatest(seq_done, p_seq),
        stream_seq = greatest(stream_seq, p_stream_seq),
        updated_at = clock_timestamp()
    WHERE relay = 'audit';
    RETURN FOUND;
END $$;
