-- verify_size(workspace_id) -> how many deliveries, queue rows, publications, events and turns a workspace has
--
-- For a progress bar.
--
-- Exact counts: the caller is about to read each of them, which costs far more.
CREATE OR REPLACE FUNCTION verify_size(p_workspace_id uuid)
RETURNS TABLE (deliveries bigint, queue_rows bigint, publications bigint, events bigint, turns bigint)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT (SELECT count(*) FROM deliveries d WHERE d.workspace_id = p_workspace_id),
           (SELECT count(*) FROM delivery_queue q WHERE q.workspace_id = p_workspace_id)
               + (SELECT count(*) FROM dead_letters g WHERE g.workspace_id = p_workspace_id),
           (SELECT count(*) FROM publications p WHERE p.workspace_id = p_workspace_id),
           (SELECT count(*) FROM events e WHERE e.workspace_id = p_workspace_id),
           (SELECT count(*) FROM bot_logs l WHERE l.workspace_id = p_workspace_id)
$$;
