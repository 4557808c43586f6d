-- take_leader_lease(job, holder, lease, every) -> whether this holder may run the job now
--
-- One of the monitor's replicas runs each job, without any message between them: the first that asks when the job is
-- due holds it until it ends it or stops renewing. The holder calls again to renew.
--
-- true      this holder has it already, and the lease now ends later; or it is due: `every` has passed since the last
--           run began; or the holder of the last run let its lease expire without ending it
-- false     another holder runs it, or it is not due yet
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
