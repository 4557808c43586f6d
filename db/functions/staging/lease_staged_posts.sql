-- lease_staged_posts(limit, per_workspace, lease) -> the posts whose media the caller fetches now
--
-- Leases due posts, each to one worker at a time, under a fresh token. A workspace has at most per_workspace posts
-- leased, on all replicas together, and those with the fewest come first: a long backlog of one tenant does not delay
-- the others. A post with an expired lease is due again. Workspaces that are not active are skipped.
--
-- Changes      staged | fetching -> fetching, attempt + 1
-- Locks        one such call at a time, then staged_posts by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION lease_staged_posts(p_limit int, p_per_workspace int, p_lease interval)
RETURNS TABLE (
    workspace_id uuid,
    post_id uuid,
    run_id uuid,
    trace_id text,
    traceparent text,
    request jsonb,
    source jsonb,
    attempt int,
    lease_token uuid
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
BEGIN
    -- Counted and taken by one call at a time, or two replicas would both find the budget unspent. The next statement
    -- sees what the previous call has taken.
    PERFORM pg_advisory_xact_lock(hashtextextended('lease_staged_posts', 0));
    _now := clock_timestamp();

    RETURN QUERY
    WITH RECURSIVE tenants AS (
        (
            SELECT s.workspace_id
            FROM staged_posts s
            WHERE s.status IN ('staged', 'fetching')
            ORDER BY s.workspace_id
            LIMIT 1
        )
        UNION ALL
        SELECT (
            SELECT s.workspace_id
            FROM staged_posts s
            WHERE s.status IN ('staged', 'fetching')
              AND s.workspace_id > t.workspace_id
            ORDER BY s.workspace_id
            LIMIT 1
        )
        FROM tenants t
        WHERE t.workspace_id IS NOT NULL
    ), chosen AS MATERIALIZED (
        SELECT d.workspace_id, d.post_id
        FROM tenants t
        JOIN workspaces w
          ON w.workspace_id = t.workspace_id
         AND w.status = 'active'
        CROSS JOIN LATERAL (
            SELECT count(*) AS out
            FROM staged_posts f
            WHERE f.workspace_id = t.workspace_id
              AND f.status = 'fetching'
              AND f.lease_until > _now
        ) AS b
        CROSS JOIN LATERAL (
            SELECT s.workspace_id, s.post_id, s.next_attempt_at, row_number() OVER (ORDER BY s.next_attempt_at) AS nth
            FROM staged_posts s
            WHERE s.workspace_id = t.workspace_id
              AND s.status IN ('staged', 'fetching')
              AND s.next_attempt_at <= _now
            ORDER BY s.next_attempt_at
            LIMIT greatest(p_per_workspace - b.out, 0)
        ) AS d
        ORDER BY b.out + d.nth, d.next_attempt_at
        LIMIT p_limit
    ), free AS MATERIALIZED (
        SELECT s.workspace_id, s.post_id
        FROM chosen c
        JOIN staged_posts s USING (workspace_id, post_id)
        WHERE s.status IN ('staged', 'fetching')
          AND s.next_attempt_at <= _now
        FOR UPDATE OF s SKIP LOCKED
    )
    UPDATE staged_posts s
    SET status = 'fetching',
        attempt = s.attempt + 1,
        lease_token = new_id(),
        lease_until = _now + p_lease,
        next_attempt_at = _now + p_lease
    FROM free f
    WHERE s.workspace_id = f.workspace_id
      AND s.post_id = f.post_id
    RETURNING s.workspace_id, s.post_id, s.run_id, s.trace_id, s.traceparent, s.request, s.source, s.attempt,
              s.lease_token;
END $$;
