-- audit_cursor() -> the position of the audit relay, for verify_events; null while no relay has ever run here
--
-- {"lo", "hi", "seq_done", "floor_seq"}: an event waits for the relay when lo <= xid and floor_seq < seq, except those
-- with xid < hi and seq <= seq_done. During a sweep along seq, and before the relay has started in a new cluster, where
-- transaction ids mean nothing, only events published before that are known to be in the stream.
CREATE OR REPLACE FUNCTION audit_cursor()
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT CASE
        WHEN r.sweep_from IS NULL AND r.system_identifier = c.system_identifier THEN jsonb_build_object(
            'lo', r.lo::text, 'hi', r.hi::text, 'seq_done', r.seq_done, 'floor_seq', r.floor_seq)
        ELSE jsonb_build_object(
            'lo', '0', 'hi', '0', 'seq_done', 0, 'floor_seq', coalesce(r.sweep_from, r.floor_seq))
    END
    FROM relay_state r
    CROSS JOIN pg_control_system() AS c
    WHERE r.relay = 'audit'
$$;
