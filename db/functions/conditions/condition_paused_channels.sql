-- condition_paused_channels(more_than, share) -> the workspaces with more channels paused right now
--
-- share    also those in which more than this part of the enabled channels is paused: a small installation has few
--
-- causes: the five whose pause ends last, each with the error's code or the operator's reason.
CREATE OR REPLACE FUNCTION condition_paused_channels(p_more_than bigint, p_share numeric DEFAULT NULL)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    WITH paused AS MATERIALIZED (
        SELECT c.workspace_id, count(*) AS channels,
               (array_agg(c.channel_id ORDER BY c.paused_until DESC, c.channel_id))[1:5] AS last
        FROM channels c
        JOIN workspaces w USING (workspace_id)
        WHERE c.paused_until > clock_timestamp()
          AND w.status <> 'disabled'
        GROUP BY c.workspace_id
        HAVING count(*) > p_more_than
            OR count(*) > p_share * (
                SELECT count(*)
                FROM channels o
                WHERE o.workspace_id = c.workspace_id
                  AND (o.enabled OR o.paused_until > clock_timestamp()))
    )
    SELECT p.workspace_id, p.channels, min(closed.ts), jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'name', coalesce(c.title, c.platform || ' ' || c.channel_id),
               'code', closed.reason, 'id', c.channel_id)) ORDER BY c.title, c.channel_id)
    FROM paused p
    JOIN channels c
      ON c.workspace_id = p.workspace_id
     AND c.channel_id = ANY (p.last)
    LEFT JOIN LATERAL (
        SELECT e.ts, coalesce(e.error ->> 'code', e.meta ->> 'reason') AS reason
        FROM events e
        WHERE e.workspace_id = c.workspace_id
          AND e.channel_id = c.channel_id
          AND e.delivery_id IS NULL
          AND e.action = 'channel_paused'
        ORDER BY e.ts DESC
        LIMIT 1
    ) AS closed ON true
    GROUP BY p.workspace_id, p.channels
$$;
