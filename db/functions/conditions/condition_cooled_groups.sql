-- condition_cooled_groups(at_least) -> the workspaces with so many rate groups whose token was refused everywhere
--
-- When a credential fails in channel after channel, the group is cooled down and the channels get no penalty (see
-- token_storms). Counts the last ten minutes. causes: the groups.
CREATE OR REPLACE FUNCTION condition_cooled_groups(p_at_least bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT w.workspace_id, count(*), min(g.since),
           jsonb_path_query_array(
               jsonb_agg(jsonb_build_object('name', g.name, 'code', g.code, 'count', g.failures, 'id', g.delivery_id)
                         ORDER BY g.failures DESC, g.name), '$[0 to 4]')
    FROM workspaces w
    CROSS JOIN LATERAL (
        SELECT c.platform || ' ' || c.rate_group AS name, min(e.error ->> 'code') AS code, count(*) AS failures,
               min(e.ts) AS since, (array_agg(e.delivery_id ORDER BY e.ts))[1] AS delivery_id
        FROM events e
        JOIN channels c
          ON c.workspace_id = e.workspace_id
         AND c.channel_id = e.channel_id
        WHERE e.workspace_id = w.workspace_id
          AND e.ts > (SELECT clock_timestamp() - interval '10 minutes')
          AND e.result = 'error'
          AND e.action = 'failed_permanent'
          AND e.meta -> 'group_cooled' = 'true'
        GROUP BY c.platform, c.rate_group
    ) AS g
    WHERE w.status <> 'disabled'
    GROUP BY w.workspace_id
    HAVING count(*) >= p_at_least
$$;
