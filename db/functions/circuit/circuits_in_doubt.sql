-- circuits_in_doubt(workspace_ids) -> those with a rate group whose circuit depends on the next outcomes
--
-- Nearly always none, and found out from an empty index for all of them at once: then a commit of sends touches no rate
-- group.
CREATE OR REPLACE FUNCTION circuits_in_doubt(p_workspace_ids uuid[])
RETURNS SETOF uuid
LANGUAGE sql
STABLE ROWS 1
AS $$
    SELECT g.workspace_id
    FROM platform_limits g
    WHERE g.workspace_id = ANY (p_workspace_ids)
      AND (g.failed_deliveries <> '{}' OR g.circuit = 'half')
$$;
