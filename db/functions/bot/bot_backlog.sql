-- bot_backlog() -> customers' updates that have no answer yet, by workspace
CREATE OR REPLACE FUNCTION bot_backlog()
RETURNS TABLE (workspace_id uuid, unanswered bigint, oldest timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT i.workspace_id, count(*), min(i.ts)
    FROM bot_inbox i
    JOIN workspaces w USING (workspace_id)
    WHERE i.processed_at IS NULL
      AND w.status = 'active'
    GROUP BY i.workspace_id
$$;
