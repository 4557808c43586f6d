-- reader_workspaces() -> the workspaces that this session reads through the reader_* views, why and raw payloads
--
-- A login reads the workspaces that reader_logins names for it. The setting autopost.workspace_id narrows them to one
-- and never adds one. A login of an operator, which acts for a tenant as autopost_reader or autopost_payloads, reads
-- the one workspace that the setting names, and none without it.
--
-- Uses session_user: neither SET ROLE nor a function of its owner changes it. A setting that is empty, as after SET
-- LOCAL on a reused connection, or is no uuid counts as none.
CREATE OR REPLACE FUNCTION reader_workspaces()
RETURNS SETOF uuid
LANGUAGE sql
STABLE ROWS 1
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH asked AS (
        SELECT nullif(current_setting('autopost.workspace_id', true), '') AS setting
    ),
    named AS (
        SELECT a.setting IS NULL AS is_any,
               CASE WHEN a.setting ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' THEN a.setting::uuid END AS workspace_id
        FROM asked a
    )
    SELECT l.workspace_id
    FROM reader_logins l
    CROSS JOIN named n
    WHERE l.login = session_user
      AND (n.is_any OR l.workspace_id = n.workspace_id)
    UNION
    SELECT n.workspace_id
    FROM named n
    WHERE n.workspace_id IS NOT NULL
      AND pg_has_role(session_user, 'autopost_operator', 'MEMBER')
$$;
