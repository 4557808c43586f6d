-- sees_workspace(workspace_id) -> whether whoever asks may read this workspace
--
-- Row security for functions that tenants' own readers may call. An operator sees every workspace. Anybody else sees
-- the one that the setting autopost.workspace_id of the session names, and none without it: whoever opens a connection
-- for a tenant sets it, as role autopost_reader.
--
-- Asks for the role of the caller, which inside a function of its owner is no longer current_user.
CREATE OR REPLACE FUNCTION sees_workspace(p_workspace_id uuid)
RETURNS boolean
LANGUAGE sql
STABLE
AS $$
    SELECT pg_has_role(caller.name, 'autopost_operator', 'MEMBER')
        OR coalesce(p_workspace_id = nullif(current_setting('autopost.workspace_id', true), '')::uuid, false)
    FROM (
        SELECT CASE current_setting('role') WHEN 'none' THEN session_user::text ELSE current_setting('role') END
    ) AS caller (name)
$$;
