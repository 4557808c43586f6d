-- due_workspaces(limit) -> active workspaces with something to claim now or at a known time
--
-- First those that are due, the longest unserved before the others; then the rest, by when they are due: so
-- however many only wait for their time, nothing that is due is left out. What the poll asks when no wakeup tells.
-- The turn is kept by the claim itself (workspace_due.last_claimed_at), so no replica can make another skip a
-- workspace.
--
-- Cost         a probe of channel_due per token group of the installation. All at once: to ask next_due_at() for
--              each workspace, whose rule this is, costs eight times as much.
CREATE OR REPLACE FUNCTION due_workspaces(p_limit int DEFAULT 1000)
RETURNS TABLE (workspace_id uuid, next_due_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id, due.at
    FROM (
        SELECT g.workspace_id, min(greatest(first.next_due_at, g.next_allowed_at)) AS at
        FROM platform_limits g
        CROSS JOIN LATERAL (
            SELECT d.next_due_at
            FROM channel_due d
            WHERE d.workspace_id = g.workspace_id
              AND d.platform = g.platform
              AND d.rate_group = g.rate_group
              AND d.next_due_at < 'infinity'
            ORDER BY d.next_due_at
            LIMIT 1
        ) AS first
        GROUP BY g.workspace_id
    ) AS due
    JOIN workspaces w
      ON w.workspace_id = due.workspace_id
     AND w.status = 'active'
    LEFT JOIN workspace_due t ON t.workspace_id = due.workspace_id
    WHERE due.at < 'infinity'
    ORDER BY due.at > now(),
             CASE WHEN due.at > now() THEN due.at ELSE coalesce(t.last_claimed_at, '-infinity') END
    LIMIT p_limit
$$;
