-- admit_action(workspace_id, endpoint_id) -> why a call of the action API is refused, or null; and how long to wait
--
-- Verdicts  endpoint_disabled (or deleted), workspace_disabled, rate_limited with wait_ms
-- Locks     ingress_gates
CREATE OR REPLACE FUNCTION admit_action(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    OUT verdict text,
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

    _gate := take_ingress_tokens(p_workspace_id, p_endpoint_id, _endpoint.ingress_rps, 1);
    IF _gate.passed = 0 THEN
        verdict := 'rate_limited';
        wait_ms := ceil(extract(epoch FROM _gate.wait) * 1000);
    END IF;
END $$;
