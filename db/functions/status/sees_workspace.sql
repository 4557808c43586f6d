-- sees_workspace(workspace_id) -> whether the caller may read this workspace
--
-- Row security for functions that tenants' own readers may call. An operator sees every workspace, any other caller
-- those of reader_workspaces.
--
-- Checks the role of the caller, which inside a function of its owner is no longer current_user.
CREATE OR REPLACE FUNCTION sees_workspace(p_workspace_id uuid)
RETURNS boolean
LANGUAGE sql
STABLE
AS $$
    SELECT pg_has_role(caller.name, 'autopost_operator', 'MEMBER')
        OR p_workspace_id IN (SELECT reader_workspaces())
    FROM (
        SELECT CASE current_setting('role') WHEN 'none' THEN session_user::text ELSE current_setting('role') END
    ) AS caller (name)
$$;
