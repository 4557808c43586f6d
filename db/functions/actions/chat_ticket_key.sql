-- chat_ticket_key(endpoint_id) -> an enabled endpoint of the action API, with the key of its tickets; or nothing
--
-- A ticket lets a browser read one chat. Its key is derived from the hash of the endpoint's secret, so every replica has
-- it and a rotated secret ends all tickets.
CREATE OR REPLACE FUNCTION chat_ticket_key(p_endpoint_id uuid)
RETURNS TABLE (
    workspace_id uuid,
    endpoint_id uuid,
    workspace_status workspace_status,
    ingress_rps numeric,
    max_payload_bytes int,
    ticket_key bytea
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT e.workspace_id, e.endpoint_id, w.status, e.ingress_rps, e.max_payload_bytes,
           sha256(convert_to('autopost chat ticket ' || e.secret_hash, 'UTF8'))
    FROM workspace_endpoints e
    JOIN workspaces w USING (workspace_id)
    WHERE e.endpoint_id = p_endpoint_id
      AND e.kind = 'bot_api'
      AND e.enabled
$$;
