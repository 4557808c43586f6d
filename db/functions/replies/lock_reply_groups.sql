-- lock_reply_groups(workspace_ids) -> the workspaces that have one, and the place (ctid) of the rate group of each
--
-- The rate groups that the replies of these bots use, locked. A null is passed over.
--
-- Locks     platform_limits by key
CREATE OR REPLACE FUNCTION lock_reply_groups(p_workspace_ids uuid[], OUT workspaces uuid[], OUT places tid[])
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    SELECT array_agg(w.workspace_id), array_agg(g.place)
    INTO workspaces, places
    FROM (SELECT DISTINCT unnest(p_workspace_ids) AS workspace_id ORDER BY 1) AS w
    CROSS JOIN LATERAL (
        SELECT g.ctid AS place
        FROM bot_settings s
        JOIN platform_limits g
          ON g.workspace_id = s.workspace_id
         AND g.platform = s.provider
         AND g.rate_group = s.rate_group
        WHERE s.workspace_id = w.workspace_id
        FOR UPDATE OF g
    ) AS g;
END $$;
