-- open_window(state)
-- -> whether a window was opened: transactions that have ended since the last one, with events in them
--
-- Writes nothing when there is none, so an idle relay costs no writes. Up to 20,000 events are found by their
-- transactions, again for each chunk; more are read along seq, or each chunk would cost as much as the window.
CREATE OR REPLACE FUNCTION open_window(p_state relay_state)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    _most CONSTANT int := 20000;
    -- In this order: a transaction that ended before the snapshot got its numbers before.
    _hi xid8 := pg_snapshot_xmin(pg_current_snapshot());
    _top bigint := (SELECT last_value FROM events_seq);
    _count bigint;
    _first bigint;
BEGIN
    SELECT count(*), min(found.seq)
    INTO _count, _first
    FROM (
        SELECT e.seq
        FROM events e
        WHERE e.xid >= p_state.lo
          AND e.xid < _hi
          AND e.seq > p_state.floor_seq
        LIMIT _most + 1
    ) AS found;
    IF _count = 0 THEN
        RETURN false;
    END IF;
    IF _count > _most THEN
        _first := CASE WHEN p_state.lo = '0' THEN p_state.floor_seq + 1 ELSE (
            SELECT min(e.seq)
            FROM events e
            WHERE e.xid >= p_state.lo
              AND e.xid < _hi
              AND e.seq > p_state.floor_seq
        ) END;
    END IF;
    UPDATE relay_state
    SET hi = _hi, seq_done = _first - 1, seq_top = _top, by_seq = _count > _most, updated_at = clock_timestamp()
    WHERE relay = p_state.relay;
    RETURN true;
END $$;
