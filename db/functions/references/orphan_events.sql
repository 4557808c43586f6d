-- orphan_events(workspace_id) -> the missing rows that events refer to, as of the last pass (reconcile_events)
--
-- what         'delivery', 'message' or 'channel'; ref is its id
-- events       how many of them refer to it, since when, and the first of them
-- workspace_id null is all of them
CREATE OR REPLACE FUNCTION orphan_events(p_workspace_id uuid DEFAULT NULL)
RETURNS TABLE (
    workspace_id uuid,
    what text,
    ref uuid,
    events bigint,
    first_event_id uuid,
    first_event_at timestamptz,
    found_at timestamptz
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT m.workspace_id, m.what, m.ref, m.events, m.first_event_id, m.first_event_at, m.found_at
    FROM missing_references m
    WHERE p_workspace_id IS NULL OR m.workspace_id = p_workspace_id
    ORDER BY m.workspace_id, m.found_at, m.what, m.ref
$$;
