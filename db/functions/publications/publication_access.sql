-- publication_access(workspace_id, endpoint_id) -> {"name", "scopes"} of an enabled endpoint of publications, or null
--
-- name     who it is, in events: meta.name, else its id
-- scopes   meta.scopes: draft, approve, schedule. Without any it may only read.
CREATE OR REPLACE FUNCTION publication_access(p_workspace_id uuid, p_endpoint_id uuid)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT jsonb_build_object(
               'name', coalesce(nullif(btrim(e.meta ->> 'name'), ''), e.endpoint_id::text),
               'scopes', (
                   SELECT coalesce(jsonb_agg(s.scope), '[]')
                   FROM jsonb_array_elements(
                       CASE jsonb_typeof(e.meta -> 'scopes') WHEN 'array' THEN e.meta -> 'scopes' ELSE '[]' END) AS s (scope)
                   WHERE s.scope IN ('"draft"', '"approve"', '"schedule"')
               ))
    FROM workspace_endpoints e
    WHERE e.workspace_id = p_workspace_id
      AND e.endpoint_id = p_endpoint_id
      AND e.kind = 'publication_api'
      AND e.enabled
$$;
