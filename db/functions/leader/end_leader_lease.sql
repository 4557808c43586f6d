-- end_leader_lease(job, holder)
--
-- Marks the job as done, so that it is due again by its interval. Changes nothing when another holder has it by now.
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
