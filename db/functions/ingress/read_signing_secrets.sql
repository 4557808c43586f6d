-- read_signing_secrets(endpoint_id) -> each secret that may have signed a push to this endpoint, with the endpoint
--
-- An endpoint has at most two: the credential of platform 'webhook' named by its id, and one named id:next, valid
-- beside it while senders change over. Sealed ones only: no secret is returned in clear, and ciphertext opens only
-- under its own name. The id alone does not prove the tenant; the caller trusts it when a signature matches.
CREATE OR REPLACE FUNCTION read_signing_secrets(p_endpoint_id uuid)
RETURNS TABLE (
    workspace_id uuid,
    endpoint_id uuid,
    workspace_status workspace_status,
    ingress_rps numeric,
    max_payload_bytes int,
    hash_drop_window_sec int,
    auth_ref text,
    sealed bytea
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT e.workspace_id, e.endpoint_id, w.status, e.ingress_rps, e.max_payload_bytes, e.hash_drop_window_sec,
           b.auth_ref, b.sealed
    FROM workspace_endpoints e
    JOIN workspaces w USING (workspace_id)
    JOIN credential_bindings b
        ON b.workspace_id = e.workspace_id
       AND b.platform = 'webhook'
       AND b.auth_ref IN (e.endpoint_id::text, e.endpoint_id || ':next')
    WHERE e.endpoint_id = p_endpoint_id
      AND e.kind = 'webhook_push'
      AND e.enabled
      AND b.sealed IS NOT NULL
$$;
