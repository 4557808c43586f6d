-- condition_publications_late(older) -> the workspaces with publications that should have been out for so long
--
-- They are due and not sent: behind a paused channel, a closed window, a platform that does not answer.
CREATE OR REPLACE FUNCTION condition_publications_late(p_older interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT l.workspace_id, l.found, l.since, (
               SELECT jsonb_agg(jsonb_build_object('name', coalesce(c.title, c.target_id), 'code', 'late', 'id', o.id)
                                ORDER BY o.place)
               FROM unnest(l.ids[1:5], l.channels[1:5]) WITH ORDINALITY AS o (id, channel_id, place)
               JOIN channels c
                 ON c.workspace_id = l.workspace_id
                AND c.channel_id = o.channel_id
           )
    FROM ( -- counted first: a look-up for each would cost more than reading them
        SELECT p.workspace_id, count(*) AS found, min(p.scheduled_at) AS since,
               array_agg(p.publication_id ORDER BY p.scheduled_at, p.publication_id) AS ids,
               array_agg(p.channel_id ORDER BY p.scheduled_at, p.publication_id) AS channels
        FROM publications p
        WHERE p.status = 'publishing'
          AND p.scheduled_at < (SELECT clock_timestamp() - p_older)
        GROUP BY p.workspace_id
    ) AS l
    JOIN workspaces w
      ON w.workspace_id = l.workspace_id
     AND w.status = 'active'
$$;
