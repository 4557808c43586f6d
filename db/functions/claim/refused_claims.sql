-- refused_claims(longer_than, workspace_id, now)
-- -> the workspaces where no claim has got its lock for so long, and which backend holds it
--
-- Only where claims keep trying: the last refused one is at most ten seconds old.
--
-- since        the first refused claim since the last one that got the lock
-- blocking_*   the backend that holds the lock now; null when none does any more. Its query is not shown
-- workspace_id null: all of them
CREATE OR REPLACE FUNCTION refused_claims(
    p_longer_than interval,
    p_workspace_id uuid DEFAULT NULL,
    p_now timestamptz DEFAULT NULL
)
RETURNS TABLE (
    workspace_id uuid,
    since timestamptz,
    blocking_pid int,
    blocking_user text,
    blocking_application text,
    blocking_state text
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT r.workspace_id, r.since, b.pid, b.usename::text, b.application_name, b.state
    FROM (SELECT coalesce(p_now, clock_timestamp()) AS now OFFSET 0) AS clock
    CROSS JOIN claim_refusals r
    LEFT JOIN workspace_due d ON d.workspace_id = r.workspace_id
    LEFT JOIN LATERAL (
        SELECT l.pid, a.usename, a.application_name, a.state
        FROM pg_locks l
        LEFT JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'advisory'
          AND l.granted
          AND l.objsubid = 1
          AND l.database = (SELECT o.oid FROM pg_database o WHERE o.datname = current_database())
          AND (l.classid::bigint << 32) | l.objid::bigint = claim_lock(r.workspace_id)
        LIMIT 1
    ) AS b ON true
    WHERE (p_workspace_id IS NULL OR r.workspace_id = p_workspace_id)
      AND r.since < clock.now - p_longer_than
      AND r.seen_at > clock.now - interval '10 seconds'
      AND coalesce(d.last_claimed_at, '-infinity') < r.since
$$;
