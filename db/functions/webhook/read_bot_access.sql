-- read_bot_access(workspace_id, secret_hash) -> where the token of the bot is, and whether a secret opens its webhook
--
-- No row     the workspace has no bot
-- Never the token itself: env: and file: name a place, sealed is ciphertext
-- has_secret secret_hash is that of an enabled bot_webhook endpoint of the workspace; null without a hash
CREATE OR REPLACE FUNCTION read_bot_access(p_workspace_id uuid, p_secret_hash text DEFAULT NULL)
RETURNS TABLE (
    auth_ref text,
    secret_ref text,
    sealed bytea,
    bot_id text,
    rotated_at timestamptz,
    webhook_url text,
    has_secret boolean
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT b.auth_ref, b.secret_ref, b.sealed, b.bot_id, b.rotated_at, s.webhook_url,
           CASE WHEN p_secret_hash IS NOT NULL THEN EXISTS (
               SELECT 1
               FROM workspace_endpoints e
               WHERE e.workspace_id = p_workspace_id
                 AND e.kind = 'bot_webhook'
                 AND e.enabled
                 AND e.secret_hash = p_secret_hash
           ) END
    FROM bot_settings s
    JOIN credential_bindings b
      ON b.workspace_id = s.workspace_id
     AND b.platform = s.provider
     AND b.auth_ref = s.auth_ref
    WHERE s.workspace_id = p_workspace_id
$$;
