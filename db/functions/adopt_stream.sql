-- adopt_stream(holder, created, last_seq, messages, max_age) -> whether everything will be published again
--
-- Compares the stream that is there with the one that was written to. NATS may have lost its disk, somebody may have
-- deleted the stream, emptied it or brought back an older copy: then all events that would still be in it, from the week of
-- `max_age` ago on, go there again. Whoever listens knows an event by its id.
--
-- Locks     monitor_rounds, relay_state
CREATE OR REPLACE FUNCTION adopt_stream(
    p_holder uuid, p_created timestamptz, p_last_seq bigint, p_messages bigint, p_max_age interval
)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _known relay_state;
BEGIN
    IF NOT holds_relay(p_holder) THEN
        RETURN false;
    END IF;
    SELECT * INTO STRICT _known FROM relay_state WHERE relay = 'audit' FOR UPDATE;
    IF _known.stream_created IS NULL THEN
        UPDATE relay_state SET stream_created = p_created WHERE relay = 'audit';
        RETURN false;
    END IF;
    IF _known.stream_created = p_created
       AND p_last_seq >= _known.stream_seq
       AND (p_messages > 0 OR _known.stream_seq = 0)
    THEN
        RETURN false;
    END IF;
    UPDATE relay_state
    SET stream_created = p_created,
        stream_seq = CASE WHEN p_messages > 0 THEN p_last_seq ELSE 0 END,
        sweep_from = CASE WHEN floor_seq > 0 THEN 0 END,
        lo = '0', hi = '0', seq_done = 0, seq_top = 0, seq_passed = 0, by_seq = false,
        -- By whole partitions, so that reading along seq meets nothing that is too old.
        since = date_trunc('week', clock_timestamp() - p_max_age, 'UTC'),
        updated_at = clock_timestamp()
    WHERE relay = 'audit';
    RETURN true;
END $$;
