-- resolve_status_token(token_hash) -> what the token may see, or nothing: unknown, expired and revoked look alike
--
-- workspace_id   what the token may see; null is the operator, who sees all
CREATE OR REPLACE FUNCTION resolve_status_token(p_token_hash text)
RETURNS TABLE (workspace_id uuid, label text, expires_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT t.workspace_id, t.label, t.expires_at
    FROM status_tokens t
    WHERE t.token_hash = p_token_hash
      AND t.revoked_at IS NULL
      AND t.expires_at > clock_timestamp()
$$;
