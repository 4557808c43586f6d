-- renew_attempts(workspace_id, delivery_ids)
--
-- A hand-written statement has brought back these dead letters. It does not set max_attempts, and without a new budget
-- the first failure would be the last: attempt stays what it is, and five more are allowed.
--
-- Called once per statement and workspace, by deliveries_after_update: a trigger per row would write row by row, in the
-- order of the statement, and each write locks the row's channel.
--
-- Changes   max_attempts
-- Locks     deliveries: held by the caller
CREATE OR REPLACE FUNCTION renew_attempts(p_workspace_id uuid, p_delivery_ids uuid[])
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    UPDATE deliveries d
    SET max_attempts = d.attempt + 5
    WHERE d.workspace_id = p_workspace_id
      AND d.delivery_id = ANY (p_delivery_ids)
$$;
