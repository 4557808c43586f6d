-- admit_actions(workspace_id, endpoint_id, count) -> why calls of the action API are refused, or how many may pass
--
-- Verdicts  endpoint_disabled (or deleted), workspace_disabled; null: the first passed of them may, the next one has to
--           wait wait_ms
-- Locks     ingress_gates
CREATE OR REPLACE FUNCTION admit_actions(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_count int,
    OUT verdict text,
    OUT passed int,
    OUT wait_ms int,
    OUT status workspace_status
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _endpoint record;
    _gate record;
BEGIN
    SELECT e.ingress_rps, e.enabled, w.status
    INTO _endpoint
    FROM workspace_endpoints e
    JOIN workspaces w USING (workspace_id)
    WHERE e.workspace_id = p_workspace_id
      AND e.endpoint_id = p_endpoint_id
      AND e.kind = 'bot_api';
    IF NOT FOUND OR NOT _endpoint.enabled THEN
        verdict := 'endpoint_disabled';
        RETURN;
    END IF;
    status := _endpoint.status;
    IF status = 'disabled' THEN
        verdict := 'workspace_disabled';
        RETURN;
    END IF;

    _gate := take_ingress_tokens(p_workspace_id, p_endpoint_id, _endpoint.ingress_rps, p_count);
    passed := _gate.passed;
    wait_ms := ceil(extract(epoch FROM _gate.wait) * 1000);
END $$;
