-- claim_shared(workspaces, channels, renderings) -> {"plans": {…}, "channels": {…}}, see claim_deliveries
--
-- What the deliveries of a claim share, once for all of them: many share a channel or a plan. The three arrays go row
-- by row, one row per delivery. The document is keyed by workspace first, because an id is unique in its workspace only.
CREATE OR REPLACE FUNCTION claim_shared(p_workspaces uuid[], p_channels uuid[], p_renderings uuid[])
RETURNS json
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    RETURN json_build_object(
        'plans', (
            SELECT json_object_agg(w.workspace_id, w.plans)
            FROM (
                SELECT p.workspace_id, json_object_agg(p.rendering_id, r.plan) AS plans
                FROM (
                    SELECT DISTINCT p.workspace_id, p.rendering_id
                    FROM unnest(p_workspaces, p_renderings) AS p (workspace_id, rendering_id)
                ) AS p
                CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
                    SELECT r.plan
                    FROM renderings r
                    WHERE r.workspace_id = p.workspace_id
                      AND r.rendering_id = p.rendering_id
                    OFFSET 0
                ) AS r
                GROUP BY p.workspace_id
            ) AS w
        ),
        'channels', (
            SELECT json_object_agg(w.workspace_id, w.channels)
            FROM (
                SELECT p.workspace_id, json_object_agg(p.channel_id, c.facts) AS channels
                FROM (
                    SELECT DISTINCT p.workspace_id, p.channel_id
                    FROM unnest(p_workspaces, p_channels) AS p (workspace_id, channel_id)
                ) AS p
                CROSS JOIN LATERAL (
                    SELECT json_build_object(
                               'platform', c.platform, 'target_id', c.target_id, 'rate_group', c.rate_group,
                               'auth_ref', coalesce(a.auth_ref, c.auth_ref), 'settings', c.settings,
                               'pace', date_part('epoch', greatest(rate_step(c.rate_rps), rate_step(g.rate_rps)))
                           ) AS facts
                    FROM channels c
                    JOIN platform_limits g
                      ON g.workspace_id = c.workspace_id
                     AND g.platform = c.platform
                     AND g.rate_group = c.rate_group
                    LEFT JOIN channel_auth a
                      ON a.workspace_id = c.workspace_id
                     AND a.channel_id = c.channel_id
                    WHERE c.workspace_id = p.workspace_id
                      AND c.channel_id = p.channel_id
                    OFFSET 0
                ) AS c
                GROUP BY p.workspace_id
            ) AS w
        ));
END $$;
