-- adopt_stream(holder, created, first_seq, last_seq, messages, max_age) -> what happened to the stream
--
-- Compares the current stream with the one that was written to. NATS may have lost its disk, or an operator may have
-- deleted the stream, emptied it or restored an older copy: then all events that would still be in it, from the week of
-- `max_age` ago on, are published again. Consumers recognise an event by its id.
--
-- null      it is unchanged, or another holder has the relay by now
-- again     everything will be published again
-- cut       the same, and its beginning was removed while later messages stayed: these must be deleted, or they would
--           come before earlier ones
-- first_seq null: the stream has limits besides its age, and loses its beginning to them
-- Locks     leader_leases, relay_state
CREATE OR REPLACE FUNCTION adopt_stream(
    p_holder uuid, p_created timestamptz, p_first_seq bigint, p_last_seq bigint, p_messages bigint, p_max_age interval
)
RETURNS text
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _known relay_state;
    _goes_on boolean;
    _begins boolean;
BEGIN
    IF NOT holds_relay(p_holder) THEN
        RETURN NULL;
    END IF;
    SELECT * INTO STRICT _known FROM relay_state WHERE relay = 'audit' FOR UPDATE;
    IF _known.stream_created IS NULL THEN
        UPDATE relay_state SET stream_created = p_created WHERE relay = 'audit';
        PERFORM mark_stream(p_last_seq, p_max_age);
        RETURN NULL;
    END IF;
    _goes_on := _known.stream_created = p_created
                AND p_last_seq >= _known.stream_seq
                AND (p_messages > 0 OR _known.stream_seq = 0);
    -- Messages after a mark are too young to have expired; one minute for differing clocks.
    _begins := NOT EXISTS (
        SELECT 1
        FROM relay_marks m
        WHERE m.marked_at > clock_timestamp() - p_max_age + interval '1 minute'
          AND m.stream_seq + 1 < p_first_seq
    );
    IF _goes_on AND _begins THEN
        PERFORM mark_stream(p_last_seq, p_max_age);
        RETURN NULL;
    END IF;
    DELETE FROM relay_marks;
    PERFORM mark_stream(p_last_seq, p_max_age);
    UPDATE relay_state
    SET stream_created = p_created,
        stream_seq = CASE WHEN _goes_on OR p_messages = 0 THEN 0 ELSE p_last_seq END,
        sweep_from = CASE WHEN floor_seq > 0 THEN 0 END,
        lo = '0', hi = '0', seq_done = 0, seq_top = 0, seq_passed = 0, by_seq = false,
        -- By whole partitions, so that reading along seq finds nothing that is too old.
        since = date_trunc('week', clock_timestamp() - p_max_age, 'UTC'),
        updated_at = clock_timestamp()
    WHERE relay = 'audit';
    RETURN CASE WHEN _goes_on THEN 'cut' ELSE 'again' END;
END $$;
