-- due_bot_workspaces(limit) -> active workspaces whose bot has something to do now, the longest unserved first
--
-- Nothing is due while the platform does not answer the bot's rate group: then updates and replies wait like posts do.
--
-- Cost         one probe per enabled bot of an active workspace; what waits in a paused one costs nothing
CREATE OR REPLACE FUNCTION due_bot_workspaces(p_limit int DEFAULT 1000)
RETURNS TABLE (workspace_id uuid, due_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
    SELECT s.workspace_id, c.due_at
    FROM bot_settings s
    JOIN workspaces w
      ON w.workspace_id = s.workspace_id
     AND w.status = 'active'
    JOIN platform_limits g
      ON g.workspace_id = s.workspace_id
     AND g.platform = s.provider
     AND g.rate_group = s.rate_group
    CROSS JOIN LATERAL (
        SELECT c.due_at
        FROM bot_chats c
        WHERE c.workspace_id = s.workspace_id
          AND c.due_at <= clock_timestamp()
          AND (c.lease_until IS NULL OR c.lease_until <= clock_timestamp())
        ORDER BY c.due_at
        LIMIT 1
    ) AS c
    LEFT JOIN bot_due d ON d.workspace_id = s.workspace_id
    WHERE s.enabled
      AND bot_may_take(g.circuit, g.trial, g.stalled_until, clock_timestamp()) > 0
    ORDER BY coalesce(d.last_taken_at, '-infinity'), c.due_at
    LIMIT p_limit
$$;
