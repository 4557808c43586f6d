-- list_workspaces() -> all workspaces, by name: for an operator who has to choose one
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
