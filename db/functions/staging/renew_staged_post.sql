-- renew_staged_post(workspace_id, post_id, lease_token, lease) -> whether the lease is still the caller's
--
-- Locks     staged_posts by key
CREATE OR REPLACE FUNCTION renew_staged_post(
    p_workspace_id uuid,
    p_post_id uuid,
    p_lease_token uuid,
    p_lease interval
)
RETURNS boolean
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH renewed AS (
        UPDATE staged_posts s
        SET lease_until = clock_timestamp() + p_lease,
            next_attempt_at = clock_timestamp() + p_lease
        WHERE s.workspace_id = p_workspace_id
          AND s.post_id = p_post_id
          AND s.lease_token = p_lease_token
          AND s.status = 'fetching'
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM renewed)
$$;
