-- condition_orphan_events(at_least) -> the workspaces with so many events that refer to missing rows
--
-- As of the last pass of reconcile_events. causes: what is missing.
CREATE OR REPLACE FUNCTION condition_orphan_events(p_at_least bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT o.workspace_id, sum(o.events)::bigint, min(o.found_at),
           jsonb_path_query_array(
               jsonb_agg(jsonb_build_object('name', 'missing ' || o.what, 'count', o.events, 'id', o.ref)
                         ORDER BY o.events DESC, o.what, o.ref), '$[0 to 4]')
    FROM orphan_events() AS o
    GROUP BY o.workspace_id
    HAVING sum(o.events) >= p_at_least
$$;
