-- condition_publications_late(older) -> the workspaces with publications that should have been out for so long
--
-- They are due and not sent: behind a paused channel, a closed window, a platform that does not answer.
CREATE OR REPLACE FUNCTION condition_publications_late(p_older interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT p.workspace_id, count(*), min(p.scheduled_at),
           jsonb_path_query_array(
               jsonb_agg(jsonb_build_object('name', coalesce(c.title, c.target_id), 'code', 'late',
                                            'id', p.publication_id) ORDER BY p.scheduled_at), '$[0 to 4]')
    FROM publications p
    JOIN workspaces w
      ON w.workspace_id = p.workspace_id
     AND w.status = 'active'
    JOIN channels c
      ON c.workspace_id = p.workspace_id
     AND c.channel_id = p.channel_id
    WHERE p.status = 'publishing'
      AND p.scheduled_at < clock_timestamp() - p_older
    GROUP BY p.workspace_id
$$;
