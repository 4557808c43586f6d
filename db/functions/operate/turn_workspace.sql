-- turn_workspace(workspace_id, status, operator, reason) -> {"verdict", "status", "was"}
--
-- Makes a workspace active, paused or disabled. The queue stays; once it is active again the next claim finds it, so a
-- caller that resumes it wakes the dispatchers afterwards.
--
-- Verdicts     turned, unchanged (it is so already), not_found
-- Appends      config_changed, with the old and the new status, operator and reason
-- Locks        workspaces by key
-- Raises       AP010 without operator or reason.
CREATE OR REPLACE FUNCTION turn_workspace(
    p_workspace_id uuid,
    p_status workspace_status,
    p_operator text,
    p_reason text
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _was workspace_status;
BEGIN
    SELECT w.status
    INTO _was
    FROM workspaces w
    WHERE w.workspace_id = p_workspace_id
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('verdict', 'not_found');
    ELSIF _was = p_status THEN
        RETURN jsonb_build_object('verdict', 'unchanged', 'status', _was, 'was', _was);
    END IF;

    UPDATE workspaces w
    SET status = p_status
    WHERE w.workspace_id = p_workspace_id;
    INSERT INTO events (workspace_id, action, meta)
    VALUES (p_workspace_id, 'config_changed', event_meta(NULL, NULL, _signature || jsonb_build_object(
        'what', 'workspace.status', 'was', _was, 'is', p_status)));
    RETURN jsonb_build_object('verdict', 'turned', 'status', p_status, 'was', _was);
END $$;
