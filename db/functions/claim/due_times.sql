-- due_times(workspace_ids) -> when another claim in each of these workspaces is worthwhile
--
-- 'infinity' if nothing waits for time. Channels held by max_parallel alone are left out: the commit that frees a place
-- makes them due. So is everything in a workspace that is not active: the poll finds it when it is active again. And
-- what waits for its platform: the commit of the trial makes it due (settle_circuits).
--
-- Cost      one probe per rate group
CREATE OR REPLACE FUNCTION due_times(p_workspace_ids uuid[])
RETURNS TABLE (workspace_id uuid, next_due_at timestamptz)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT w.workspace_id, coalesce(due.at, 'infinity')
    FROM unnest(p_workspace_ids) AS w (workspace_id)
    CROSS JOIN LATERAL ( -- one row, with null for none
        SELECT min(greatest(first.next_due_at, g.next_allowed_at, claimable_at(g.circuit, g.stalled_until))) AS at
        FROM workspaces active
        JOIN platform_limits g ON g.workspace_id = active.workspace_id
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
        WHERE active.workspace_id = w.workspace_id
          AND active.status = 'active'
    ) AS due;
END $$;
