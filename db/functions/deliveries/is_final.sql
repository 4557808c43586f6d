-- is_final(status) -> whether a delivery has ended: no claim takes it, nothing waits for it
--
-- The list of final statuses, in this function only. The planner inlines the body, so each query keeps its plan.
CREATE OR REPLACE FUNCTION is_final(p_status delivery_status)
RETURNS boolean
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT p_status IN ('sent', 'deduped', 'failed_permanent', 'dead', 'cancelled')
$$;
