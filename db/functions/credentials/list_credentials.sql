-- list_credentials(workspace_id) -> the credentials of a workspace and where their secrets are, by platform and name
--
-- Never a secret or its ciphertext.
CREATE OR REPLACE FUNCTION list_credentials(p_workspace_id uuid)
RETURNS TABLE (platform text, auth_ref text, secret_ref text, bot_id text, rotated_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT b.platform, b.auth_ref, b.secret_ref, b.bot_id, b.rotated_at
    FROM credential_bindings b
    WHERE b.workspace_id = p_workspace_id
    ORDER BY b.platform, b.auth_ref
$$;
