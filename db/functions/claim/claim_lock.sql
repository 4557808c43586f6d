-- claim_lock(workspace_id) -> the key of the advisory lock that a claim in this workspace holds
CREATE OR REPLACE FUNCTION claim_lock(p_workspace_id uuid)
RETURNS bigint
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT hashtextextended('claim:' || p_workspace_id, 0)
$$;
