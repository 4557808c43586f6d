-- recent_activity(workspace_id, since, top) -> what happened since then, and the most frequent errors; one row
--
-- counts       events by action. Of more than 100,000 only the newest are counted; `since` then says from when
-- top_errors   [{"code", "scope", "action", "count", "last_at"}], the most frequent first
-- Cost         100,000 events, and those with an error
CREATE OR REPLACE FUNCTION recent_activity(p_workspace_id uuid, p_since timestamptz, p_top int)
RETURNS TABLE (counts jsonb, since timestamptz, top_errors jsonb)
LANGUAGE sql
STABLE ROWS 1
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT activity.counts, activity.since, errors.top
    FROM (
        SELECT jsonb_object_agg(a.action, a.events) AS counts,
               CASE WHEN sum(a.events) = 100000 THEN min(a.since) END AS since
        FROM (
            SELECT e.action, count(*) AS events, min(e.ts) AS since
            FROM (
                SELECT e.action, e.ts
                FROM events e
                WHERE e.workspace_id = p_workspace_id
                  AND e.ts >= p_since
                ORDER BY e.ts DESC
                LIMIT 100000
            ) AS e
            GROUP BY e.action
        ) AS a
    ) AS activity
    CROSS JOIN (
        SELECT jsonb_agg(to_jsonb(t) ORDER BY t.count DESC, t.last_at DESC) AS top
        FROM (
            SELECT e.error ->> 'code' AS code, e.error ->> 'scope' AS scope, e.action, count(*) AS count,
                   max(e.ts) AS last_at
            FROM events e
            WHERE e.workspace_id = p_workspace_id
              AND e.ts >= p_since
              AND e.result = 'error'
            GROUP BY 1, 2, 3
            ORDER BY count(*) DESC, max(e.ts) DESC
            LIMIT p_top
        ) AS t
    ) AS errors
$$;
