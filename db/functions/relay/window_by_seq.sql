-- window_by_seq(state, limit) -> the next events of a large window, along seq
--
-- Reads seq in ranges as long as the chunk, so that a chunk costs what it returns, whatever the size of the window.
CREATE OR REPLACE FUNCTION window_by_seq(p_state relay_state, p_limit int)
RETURNS SETOF events
LANGUAGE plpgsql
STABLE
SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
AS $$
DECLARE
    _after bigint := p_state.seq_done;
BEGIN
    WHILE _after < p_state.seq_top LOOP
        RETURN QUERY
        SELECT *
        FROM events e
        WHERE e.seq > _after
          AND e.seq <= least(_after + p_limit, p_state.seq_top)
          AND (e.xid >= p_state.lo OR (e.seq > p_state.seq_passed AND p_state.sweep_from IS NOT NULL))
          AND e.xid < p_state.hi
          AND e.ts > p_state.since
        ORDER BY e.seq;
        EXIT WHEN FOUND;
        _after := skip_to_event(p_state, _after + p_limit, p_limit);
    END LOOP;
END $$;
