-- condition_bot_actions_expired(more_than) -> the workspaces in which more actions ran into their timeout within an hour
CREATE OR REPLACE FUNCTION condition_bot_actions_expired(p_more_than bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT w.workspace_id, sum(f.expired)::bigint, min(f.since),
           jsonb_path_query_array(
               jsonb_agg(jsonb_build_object('name', f.action_type, 'code', 'timeout', 'count', f.expired)
                         ORDER BY f.expired DESC, f.action_type), '$[0 to 4]')
    FROM workspaces w
    CROSS JOIN LATERAL (
        SELECT e.meta ->> 'action_type' AS action_type, count(*) AS expired, min(e.ts) AS since
        FROM events e
        WHERE e.workspace_id = w.workspace_id
          AND e.ts > (SELECT clock_timestamp() - interval '1 hour')
          AND e.action = 'bot_action_expired'
        GROUP BY 1
    ) AS f
    WHERE w.status <> 'disabled'
    GROUP BY w.workspace_id
    HAVING sum(f.expired) > p_more_than
$$;
