-- condition_bot_errors(more_than) -> the workspaces whose bot failed to reply more often within ten minutes
--
-- Customers who stopped the bot (chat_denied) and replies that an operator gave up (manual_skip) are none of its
-- errors.
CREATE OR REPLACE FUNCTION condition_bot_errors(p_more_than bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT w.workspace_id, sum(f.failures)::bigint, min(f.since),
           jsonb_path_query_array(
               jsonb_agg(jsonb_build_object('name', 'reply', 'code', f.code, 'count', f.failures)
                         ORDER BY f.failures DESC, f.code), '$[0 to 4]')
    FROM workspaces w
    CROSS JOIN LATERAL (
        SELECT coalesce(e.error ->> 'code', 'unknown') AS code, count(*) AS failures, min(e.ts) AS since
        FROM events e
        WHERE e.workspace_id = w.workspace_id
          AND e.ts > (SELECT clock_timestamp() - interval '10 minutes')
          AND e.result = 'error'
          AND e.action = 'bot_reply_failed'
          AND coalesce(e.error ->> 'code', 'unknown') NOT IN ('chat_denied', 'manual_skip')
        GROUP BY 1
    ) AS f
    WHERE w.status <> 'disabled'
    GROUP BY w.workspace_id
    HAVING sum(f.failures) > p_more_than
$$;
