-- take_leader_lease(round, holder, lease, every) -> whether this holder may do the round now
--
-- One of the monitor's replicas does each round, and nobody has to tell the others: whoever asks first when the round
-- is due holds it until it ends it or stops renewing. The holder asks again to renew.
--
-- true      it is this holder's already, and the lease now ends later; or it is due: `every` has passed since the last
--           one began; or whoever began the last one let its lease run out without ending it
-- false     another holder is at it, or it is not time yet
CREATE OR REPLACE FUNCTION take_leader_lease(p_job text, p_holder uuid, p_lease interval, p_every interval)
RETURNS boolean
LANGUAGE sql
VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH taken AS (
        INSERT INTO leader_leases AS r (job, holder, lease_until, begun_at)
        VALUES (p_job, p_holder, clock_timestamp() + p_lease, clock_timestamp())
        ON CONFLICT (job) DO UPDATE
        SET holder = p_holder,
            lease_until = clock_timestamp() + p_lease,
            begun_at = CASE WHEN r.holder = p_holder THEN r.begun_at ELSE clock_timestamp() END
        WHERE r.holder = p_holder
           OR r.lease_until < clock_timestamp()
           OR (r.holder IS NULL AND r.begun_at + p_every <= clock_timestamp())
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM taken)
$$;
