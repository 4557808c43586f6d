-- list_status_tokens() -> every token that was issued and is not revoked, without its hash, the newest first
CREATE OR REPLACE FUNCTION list_status_tokens()
RETURNS TABLE (
    label text,
    workspace_id uuid,
    workspace text,
    created_by text,
    reason text,
    created_at timestamptz,
    expires_at timestamptz
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT t.label, t.workspace_id, w.name, t.created_by, t.reason, t.created_at, t.expires_at
    FROM status_tokens t
    LEFT JOIN workspaces w USING (workspace_id)
    WHERE t.revoked_at IS NULL
    ORDER BY t.created_at DESC, t.label
$$;
