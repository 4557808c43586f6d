-- condition_open_circuits(at_least) -> the workspaces with so many rate groups that their platform does not answer
--
-- found: the rate groups. causes: the first that were opened, with the last error, with what waits in them (of more than
-- 100,000 that many) and with what is on hold there: closing the circuit releases none of that.
CREATE OR REPLACE FUNCTION condition_open_circuits(p_at_least bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT o.workspace_id, count(*), min(o.opened_at),
           jsonb_path_query_array(
               jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                             'name', concat_ws(' ', o.platform, o.rate_group, '(' || concat_ws(', ',
                                 'since ' || to_char(o.opened_at AT TIME ZONE 'UTC', 'HH24:MI'),
                                 o.waiting || ' waiting', nullif(o.held, 0) || ' on hold') || ')'),
                             'code', o.outage_error ->> 'code'))
                         ORDER BY o.opened_at, o.platform, o.rate_group), '$[0 to 4]')
    FROM (
        SELECT g.workspace_id, g.platform, g.rate_group, g.opened_at, g.outage_error, queued.waiting, queued.held
        FROM platform_limits g
        JOIN workspaces w
          ON w.workspace_id = g.workspace_id
         AND w.status = 'active'
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE q.due_at < 'infinity') AS waiting,
                   count(*) FILTER (WHERE q.due_at = 'infinity') AS held
            FROM (
                SELECT q.due_at
                FROM channel_due d
                JOIN delivery_queue q
                  ON q.workspace_id = d.workspace_id
                 AND q.channel_id = d.channel_id
                WHERE d.workspace_id = g.workspace_id
                  AND d.platform = g.platform
                  AND d.rate_group = g.rate_group
                  AND q.claim_token IS NULL
                LIMIT 100000
            ) AS q
        ) AS queued
        WHERE g.circuit <> 'closed'
          AND EXISTS (
              SELECT 1
              FROM channel_due d
              WHERE d.workspace_id = g.workspace_id
                AND d.platform = g.platform
                AND d.rate_group = g.rate_group
          )
    ) AS o
    GROUP BY o.workspace_id
    HAVING count(*) >= p_at_least
$$;
