-- active_workspaces() -> every workspace that works, for rounds that visit them all
CREATE OR REPLACE FUNCTION active_workspaces()
RETURNS SETOF uuid
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT workspace_id FROM workspaces WHERE status = 'active' ORDER BY workspace_id
$$;
