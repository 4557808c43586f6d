-- due_workspaces(limit) -> active workspaces with something to claim now or at a known time
--
-- Due workspaces first, the one served longest ago before the others; then the rest, by the time they are due. So no
-- number of later workspaces can displace a due one. The poll calls this when no wakeup comes. The claim itself stores
-- the turn (workspace_due.last_claimed_at), so no replica can make another skip a workspace.
--
-- Cost         one probe per rate group with something to claim, now or later; a workspace without costs nothing
CREATE OR REPLACE FUNCTION due_workspaces(p_limit int DEFAULT 1000)
RETURNS TABLE (workspace_id uuid, next_due_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH RECURSIVE busy AS ( -- walks along the index from group to group
        (
            SELECT d.rate_group, d.platform, d.workspace_id, d.next_due_at
            FROM channel_due d
            WHERE d.next_due_at < 'infinity'
            ORDER BY d.rate_group, d.platform, d.workspace_id, d.next_due_at
            LIMIT 1
        )
        UNION ALL
        SELECT following.*
        FROM busy b
        CROSS JOIN LATERAL (
            SELECT d.rate_group, d.platform, d.workspace_id, d.next_due_at
            FROM channel_due d
            WHERE d.next_due_at < 'infinity'
              AND (d.rate_group, d.platform, d.workspace_id) > (b.rate_group, b.platform, b.workspace_id)
            ORDER BY d.rate_group, d.platform, d.workspace_id, d.next_due_at
            LIMIT 1
        ) AS following
    )
    SELECT w.workspace_id, due.at
    FROM (
        SELECT b.workspace_id, min(greatest(b.next_due_at, g.next_allowed_at, g.claimable_at)) AS at
        FROM busy b
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT g.next_allowed_at, claimable_at(g.circuit, g.stalled_until) AS claimable_at
            FROM platform_limits g
            WHERE g.workspace_id = b.workspace_id
              AND g.platform = b.platform
              AND g.rate_group = b.rate_group
            OFFSET 0
        ) AS g
        GROUP BY b.workspace_id
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
