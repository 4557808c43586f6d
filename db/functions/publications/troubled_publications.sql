-- troubled_publications(status) -> per workspace: how many publications are so, since when, and the newest causes
--
-- causes   {"name": the owner or the channel, "code": why, "id": the publication}, five at most
CREATE OR REPLACE FUNCTION troubled_publications(p_status text)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT p.workspace_id, count(*), min(p.updated_at),
           jsonb_path_query_array(
               jsonb_agg(jsonb_build_object(
                   'name', coalesce(quoted(p.owner, 80), c.title, c.target_id),
                   'code', coalesce(p.pause_code, p.last_error ->> 'error_type'),
                   'id', p.publication_id) ORDER BY p.updated_at DESC), '$[0 to 4]')
    FROM publications p
    JOIN workspaces w
      ON w.workspace_id = p.workspace_id
     AND w.status <> 'disabled'
    JOIN channels c
      ON c.workspace_id = p.workspace_id
     AND c.channel_id = p.channel_id
    WHERE p.status = p_status
      AND p.status IN ('paused', 'failed')
    GROUP BY p.workspace_id
$$;
