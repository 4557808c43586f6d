-- read_staged_post(workspace_id, post_id) -> the state of a post that was accepted before its media was fetched
--
-- Nothing for a post of another workspace.
CREATE OR REPLACE FUNCTION read_staged_post(p_workspace_id uuid, p_post_id uuid)
RETURNS TABLE (
    post_id uuid,
    status text,
    run_id uuid,
    trace_id text,
    message_id uuid,
    attempt int,
    next_attempt_at timestamptz,
    error jsonb,
    stats jsonb,
    created_at timestamptz,
    finished_at timestamptz
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT s.post_id, s.status, s.run_id, s.trace_id, s.message_id, s.attempt,
           CASE WHEN s.status = 'staged' THEN s.next_attempt_at END, s.last_error, r.stats_json, s.created_at,
           s.finished_at
    FROM staged_posts s
    LEFT JOIN ingest_runs r USING (workspace_id, run_id)
    WHERE s.workspace_id = p_workspace_id
      AND s.post_id = p_post_id
$$;
