-- stall_groups(workspace_ids, platforms, rate_groups, for)
--
-- A dispatcher or a bot has calls of these groups that their platform has not answered for seconds, or cannot start what
-- it has of them. Nothing is claimed of them for this time; it repeats the call while it lasts. So a platform that hangs
-- does not fill these processes, and what it would have cost stays in the queue.
--
-- Changes   platform_limits.stalled_until
-- Locks     platform_limits by key, SKIP LOCKED: the next call comes in a second
CREATE OR REPLACE FUNCTION stall_groups(
    p_workspace_ids uuid[],
    p_platforms text[],
    p_rate_groups text[],
    p_for interval
)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
    WITH stalled AS MATERIALIZED (
        SELECT g.ctid AS place
        FROM (
            SELECT *
            FROM unnest(p_workspace_ids, p_platforms, p_rate_groups) AS k (workspace_id, platform, rate_group)
            ORDER BY 1, 2, 3
        ) AS k
        CROSS JOIN LATERAL (
            SELECT g.ctid
            FROM platform_limits g
            WHERE g.workspace_id = k.workspace_id
              AND g.platform = k.platform
              AND g.rate_group = k.rate_group
            FOR UPDATE SKIP LOCKED
        ) AS g
    )
    UPDATE platform_limits g
    SET stalled_until = clock_timestamp() + least(p_for, interval '1 minute')
    FROM stalled s
    WHERE g.ctid = s.place
$$;
