-- lock_rate_groups(workspace_ids, wait, now) -> the places (ctid) of the locked rate groups of these workspaces
--
-- The lock of a rate group is what keeps two claims from giving the same slot. It lasts until the transaction ends, so
-- the place cannot change until the claim writes it.
--
-- wait       true: all groups, waiting for each. False: only those whose gate is open, without those that others hold
-- Locks      platform_limits FOR UPDATE by key, in the order of workspace_ids
CREATE OR REPLACE FUNCTION lock_rate_groups(p_workspace_ids uuid[], p_wait boolean, p_now timestamptz DEFAULT NULL)
RETURNS tid[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _now timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    IF p_wait THEN
        RETURN ARRAY(
            SELECT g.place
            FROM unnest(p_workspace_ids) AS w (workspace_id)
            CROSS JOIN LATERAL (
                SELECT g.ctid AS place
                FROM platform_limits g
                WHERE g.workspace_id = w.workspace_id
                ORDER BY g.platform, g.rate_group
                FOR UPDATE
            ) AS g
        );
    END IF;
    RETURN ARRAY(
        SELECT g.place
        FROM unnest(p_workspace_ids) AS w (workspace_id)
        CROSS JOIN LATERAL (
            SELECT g.ctid AS place
            FROM platform_limits g
            WHERE g.workspace_id = w.workspace_id
              AND (g.next_allowed_at <= _now) IS NOT FALSE
            ORDER BY g.platform, g.rate_group
            FOR UPDATE SKIP LOCKED
        ) AS g
    );
END $$;
