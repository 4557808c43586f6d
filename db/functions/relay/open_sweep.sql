-- open_sweep(state): the window of all that a former cluster left, whose transactions have all ended, read along seq
--
-- What it had relayed is known by xid < lo and seq <= seq_passed: for its own later transactions and for those of this
-- cluster, which may have the same ids, at least one of the two is false.
CREATE OR REPLACE FUNCTION open_sweep(p_state relay_state)
RETURNS void
LANGUAGE sql
VOLATILE
SET enable_seqscan = off
AS $$
    UPDATE relay_state r
    SET hi = '18446744073709551615',
        seq_top = r.floor_seq,
        by_seq = true,
        seq_done = CASE WHEN r.lo = '0' THEN r.sweep_from ELSE least(
            greatest(r.seq_passed, r.sweep_from),
            (SELECT min(e.seq) - 1 FROM events e WHERE e.xid >= r.lo AND e.seq > r.sweep_from)
        ) END,
        updated_at = clock_timestamp()
    WHERE r.relay = p_state.relay
$$;
