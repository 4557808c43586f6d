-- next_due_at(workspace_id) -> when another claim in this workspace is worthwhile, see due_times
CREATE OR REPLACE FUNCTION next_due_at(p_workspace_id uuid)
RETURNS timestamptz
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT t.next_due_at FROM due_times(ARRAY[p_workspace_id]) AS t
$$;
