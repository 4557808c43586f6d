-- due_workspaces(limit) -> active workspaces with something to claim now or at a known time
--
-- Due workspaces first, the one served longest ago before the others; then the rest, by the time they are due. So no
-- number of later workspaces can displace a due one. The poll calls this when no wakeup comes. The claim itself stores
-- the turn (workspace_due.last_claimed_at), so no replica can make another skip a workspace.
--
-- Cost         one probe of channel_due per rate group of the installation, for all workspaces at once: calling
--              next_due_at(), whose rule this is, for each workspace costs eight times as much
CREATE OR REPLACE FUNCTION due_workspaces(p_limit int DEFAULT 1000)
RETURNS TABLE (workspace_id uuid, next_due_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id, due.at
    FROM (
        SELECT g.workspace_id, min(greatest(first.next_due_at, g.next_allowed_at,
                                            claimable_at(g.circuit, g.stalled_until))) AS at
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
