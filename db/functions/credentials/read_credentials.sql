-- read_credentials(workspace_id, platform, auth_refs) -> where each credential's secret is
--
-- Never the secret itself: env: and file: name a place, sealed is ciphertext that only the service can open.
CREATE OR REPLACE FUNCTION read_credentials(p_workspace_id uuid, p_platform text, p_auth_refs text[])
RETURNS TABLE (auth_ref text, secret_ref text, sealed bytea, bot_id text, rotated_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT b.auth_ref, b.secret_ref, b.sealed, b.bot_id, b.rotated_at
    FROM credential_bindings b
    WHERE b.workspace_id = p_workspace_id
      AND b.platform = p_platform
      AND b.auth_ref = ANY (p_auth_refs)
$$;
