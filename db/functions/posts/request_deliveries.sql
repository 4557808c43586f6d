-- request_deliveries(workspace_id, run_id, message_id) -> the deliveries that one request made of a message
--
-- Without those of publications, which have functions of their own.
--
-- run_id    null: of all requests with this content
CREATE OR REPLACE FUNCTION request_deliveries(p_workspace_id uuid, p_run_id uuid, p_message_id uuid)
RETURNS TABLE (delivery_id uuid)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    SELECT d.delivery_id
    FROM ( -- no workspace_id inside the fence: its key would read the whole workspace
        SELECT d.workspace_id, d.delivery_id, d.created_at, d.policy
        FROM deliveries d
        WHERE d.message_id = p_message_id
        OFFSET 0
    ) AS d
    WHERE d.workspace_id = p_workspace_id
      AND d.policy = 'default'
      AND (p_run_id IS NULL OR delivery_run(p_workspace_id, d.delivery_id, d.created_at) = p_run_id)
$$;
