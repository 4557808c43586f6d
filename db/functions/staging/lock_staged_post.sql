-- lock_staged_post(workspace_id, post_id, lease_token)
-- -> the staged post, locked; null when the lease is not the caller's
--
-- When it is not, a stale_commit event is written and the caller drops its result.
--
-- Appends   stale_commit
-- Locks     staged_posts by key
CREATE OR REPLACE FUNCTION lock_staged_post(p_workspace_id uuid, p_post_id uuid, p_lease_token uuid)
RETURNS staged_posts
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _staged staged_posts;
BEGIN
    SELECT s.*
    INTO _staged
    FROM staged_posts s
    WHERE s.workspace_id = p_workspace_id
      AND s.post_id = p_post_id
    FOR UPDATE;
    IF _staged.lease_token = p_lease_token THEN
        RETURN _staged;
    END IF;
    INSERT INTO events (workspace_id, action, result, attempt, meta)
    VALUES (p_workspace_id, 'stale_commit', 'error', coalesce(_staged.attempt, 0),
            jsonb_build_object('post_id', p_post_id, 'run_id', _staged.run_id, 'trace_id', _staged.trace_id));
    RETURN NULL;
END $$;
