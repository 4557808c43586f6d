-- list_workspaces() -> every tenant there is, by name: for an operator who says which one he means
CREATE OR REPLACE FUNCTION list_workspaces()
RETURNS TABLE (workspace_id uuid, name text, status workspace_status)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id, w.name, w.status
    FROM workspaces w
    ORDER BY w.name, w.workspace_id
$$;
