-- close_window(state): all of it was published, and the next one begins where it ended. After a sweep comes the first
-- window of this cluster.
CREATE OR REPLACE FUNCTION close_window(p_state relay_state)
RETURNS void
LANGUAGE sql
VOLATILE
AS $$
    UPDATE relay_state
    SET lo = CASE WHEN sweep_from IS NULL THEN hi ELSE '0' END,
        hi = CASE WHEN sweep_from IS NULL THEN hi ELSE '0' END,
        since = CASE WHEN sweep_from IS NULL THEN '-infinity' ELSE since END,
        seq_passed = greatest(seq_passed, seq_top),
        sweep_from = NULL, seq_done = 0, seq_top = 0, by_seq = false,
        updated_at = clock_timestamp()
    WHERE relay = p_state.relay
$$;
