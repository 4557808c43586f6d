-- next_due_at(workspace_id) -> when another claim in this workspace is worthwhile; 'infinity' if nothing waits for time
--
-- Channels held by max_parallel alone are left out: the commit that frees a place makes them due. So is everything
-- in a workspace that is not active: the poll finds it when it is active again. And what waits for its platform: the
-- commit of the trial makes it due (settle_circuits).
CREATE OR REPLACE FUNCTION next_due_at(p_workspace_id uuid)
RETURNS timestamptz
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(min(greatest(due.next_due_at, g.next_allowed_at, claimable_at(g.circuit, g.stalled_until))), 'infinity')
    FROM platform_limits g
    JOIN workspaces w
      ON w.workspace_id = g.workspace_id
     AND w.status = 'active'
    CROSS JOIN LATERAL (
        SELECT d.next_due_at
        FROM channel_due d
        WHERE d.workspace_id = g.workspace_id
          AND d.platform = g.platform
          AND d.rate_group = g.rate_group
        ORDER BY d.next_due_at
        LIMIT 1
    ) AS due
    WHERE g.workspace_id = p_workspace_id
$$;
