-- release_staged_post(workspace_id, post_id, lease_token)
--
-- Gives a lease back before it ends, because the worker is told to stop. The next worker starts at once, and the
-- attempt does not count. A lease that has passed on is left alone.
--
-- Changes   fetching -> staged
-- Locks     staged_posts by key
CREATE OR REPLACE FUNCTION release_staged_post(p_workspace_id uuid, p_post_id uuid, p_lease_token uuid)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    UPDATE staged_posts s
    SET status = 'staged',
        attempt = s.attempt - 1,
        lease_token = NULL,
        lease_until = NULL,
        next_attempt_at = clock_timestamp()
    WHERE s.workspace_id = p_workspace_id
      AND s.post_id = p_post_id
      AND s.lease_token = p_lease_token
      AND s.status = 'fetching'
$$;
