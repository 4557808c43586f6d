-- end_leader_lease(round, holder)
--
-- Says that the round is done, so that the next one is due by its time. Changes nothing when it is another's by now.
CREATE OR REPLACE FUNCTION end_leader_lease(p_job text, p_holder uuid)
RETURNS void
LANGUAGE sql
VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    UPDATE leader_leases
    SET holder = NULL, lease_until = NULL, done_at = clock_timestamp()
    WHERE job = p_job
      AND holder = p_holder
$$;
