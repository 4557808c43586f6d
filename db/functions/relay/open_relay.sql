-- open_relay(holder) -> whether this holder may relay
--
-- The first call of a relay. Transaction ids start again when a database is restored into another cluster, so the
-- windows start again too, and a sweep in the order of seq publishes what the former cluster had not relayed: the rest
-- of its last windows, and all that was written since.
--
-- false     another holder has the relay by now
-- Locks     leader_leases, relay_state; in a new cluster once the writers of events too, so that none of them still
--           holds a seq at or below the floor. Gives up after two seconds; the caller retries.
CREATE OR REPLACE FUNCTION open_relay(p_holder uuid)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s'
AS $$
DECLARE
    _cluster bigint := (SELECT system_identifier FROM pg_control_system());
BEGIN
    IF NOT holds_relay(p_holder) THEN
        RETURN false;
    END IF;
    INSERT INTO relay_state (relay, system_identifier)
    VALUES ('audit', _cluster)
    ON CONFLICT (relay) DO NOTHING;

    IF EXISTS (SELECT 1 FROM relay_state WHERE relay = 'audit' AND system_identifier <> _cluster) THEN
        LOCK TABLE ONLY events IN SHARE MODE;
        -- After an unfinished sweep, lo belongs to a cluster before the last: then everything beyond it remains.
        UPDATE relay_state
        SET system_identifier = _cluster,
            floor_seq = (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM events_seq),
            sweep_from = coalesce(sweep_from, floor_seq),
            lo = CASE WHEN sweep_from IS NULL THEN lo ELSE '0' END,
            hi = '0', seq_done = 0, seq_top = 0, by_seq = false,
            updated_at = clock_timestamp()
        WHERE relay = 'audit';
    END IF;
    RETURN true;
END $$;
