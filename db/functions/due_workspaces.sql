-- due_workspaces(limit) -> active workspaces with something to claim now or at a known time, the longest unserved first
--
-- What the poll asks when no wakeup tells. The turn is kept by the claim itself (workspace_due.last_claimed_at),
-- so no replica can make another skip a workspace.
CREATE OR REPLACE FUNCTION due_workspaces(p_limit int DEFAULT 1000)
RETURNS TABLE (workspace_id uuid, next_due_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id, due.at
    FROM workspaces w
    LEFT JOIN workspace_due t USING (workspace_id)
    CROSS JOIN LATERAL next_due_at(w.workspace_id) AS due (at)
    WHERE w.status = 'active'
      AND due.at < 'infinity'
    ORDER BY coalesce(t.last_claimed_at, '-infinity')
    LIMIT p_limit
$$;
