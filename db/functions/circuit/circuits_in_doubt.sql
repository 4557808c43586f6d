-- circuits_in_doubt(workspace_id) -> whether the circuit of any rate group depends on the next outcomes
--
-- Nearly always false, and found out from an empty index: then a commit of sends touches no rate group.
CREATE OR REPLACE FUNCTION circuits_in_doubt(p_workspace_id uuid)
RETURNS boolean
LANGUAGE sql
STABLE
AS $$
    SELECT EXISTS (
        SELECT 1
        FROM platform_limits g
        WHERE g.workspace_id = p_workspace_id
          AND (g.failed_deliveries <> '{}' OR g.circuit = 'half')
    )
$$;
