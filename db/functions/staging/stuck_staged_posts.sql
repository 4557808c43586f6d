-- stuck_staged_posts(older, deadline) -> posts of active workspaces whose media is stuck
--
-- why          'untaken'   due for longer than `older`, and no worker has taken it
--              'lost'      its lease expired longer ago than `older`, and no other worker has taken it
--              'late'      accepted longer ago than `deadline`, whatever its number of attempts
-- since        when it was due, its lease ended, or it was accepted
CREATE OR REPLACE FUNCTION stuck_staged_posts(p_older interval, p_deadline interval DEFAULT '6 hours')
RETURNS TABLE (
    workspace_id uuid,
    post_id uuid,
    run_id uuid,
    why text,
    since timestamptz,
    attempt int,
    code text
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT s.workspace_id, s.post_id, s.run_id, x.why,
           CASE x.why WHEN 'late' THEN s.created_at ELSE s.next_attempt_at END AS since,
           s.attempt, s.last_error ->> 'code'
    FROM staged_posts s
    JOIN workspaces w
      ON w.workspace_id = s.workspace_id
     AND w.status = 'active'
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN s.next_attempt_at < clock_timestamp() - p_older
                THEN CASE s.status WHEN 'fetching' THEN 'lost' ELSE 'untaken' END
            WHEN s.created_at < clock_timestamp() - p_deadline THEN 'late'
        END AS why
    ) AS x
    WHERE s.status IN ('staged', 'fetching')
      AND x.why IS NOT NULL
    ORDER BY since
$$;
