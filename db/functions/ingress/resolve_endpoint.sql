-- resolve_endpoint(kind, secret_hash) -> the one enabled endpoint with this secret, or nothing
--
-- The only way to find the tenant of a request.
CREATE OR REPLACE FUNCTION resolve_endpoint(p_kind text, p_secret_hash text)
RETURNS TABLE (
    workspace_id uuid,
    endpoint_id uuid,
    workspace_status workspace_status,
    ingress_rps numeric,
    max_payload_bytes int,
    hash_drop_window_sec int
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT e.workspace_id, e.endpoint_id, w.status, e.ingress_rps, e.max_payload_bytes, e.hash_drop_window_sec
    FROM workspace_endpoints e
    JOIN workspaces w USING (workspace_id)
    WHERE e.enabled
      AND e.kind = p_kind
      AND e.secret_hash = p_secret_hash
$$;
