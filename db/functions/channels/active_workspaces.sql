-- active_workspaces() -> every active workspace, for jobs that visit all of them
CREATE OR REPLACE FUNCTION active_workspaces()
RETURNS SETOF uuid
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT workspace_id FROM workspaces WHERE status = 'active' ORDER BY workspace_id
$$;
