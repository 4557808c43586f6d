-- window_by_xid(state, limit) -> the next events of a small window, by its transactions
CREATE OR REPLACE FUNCTION window_by_xid(p_state relay_state, p_limit int)
RETURNS SETOF events
LANGUAGE sql
STABLE
SET enable_seqscan = off
AS $$
    SELECT *
    FROM events e
    WHERE e.xid >= p_state.lo
      AND e.xid < p_state.hi
      AND e.seq > p_state.seq_done
      AND e.seq <= p_state.seq_top
      AND e.ts > p_state.since
    ORDER BY e.seq
    LIMIT p_limit
$$;
