-- claim_shared(workspace_id, channel_ids, rendering_ids)
-- -> {"plans": {…}, "channels": {…}} as text, see claim_deliveries
--
-- Built once for all rows of a claim, because many deliveries share a channel or a plan.
CREATE OR REPLACE FUNCTION claim_shared(p_workspace_id uuid, p_channel_ids uuid[], p_rendering_ids uuid[])
RETURNS text
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    RETURN json_build_object(
        'plans', (
            SELECT json_object_agg(r.rendering_id, r.plan)
            FROM renderings r
            WHERE r.workspace_id = p_workspace_id
              AND r.rendering_id = ANY (p_rendering_ids)
        ),
        'channels', (
            SELECT json_object_agg(p.channel_id, c.facts)
            FROM unnest(p_channel_ids) AS p (channel_id)
            CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
                SELECT json_build_object(
                           'platform', c.platform, 'target_id', c.target_id, 'rate_group', c.rate_group,
                           'auth_ref', coalesce(a.auth_ref, c.auth_ref), 'settings', c.settings,
                           'pace', date_part('epoch', greatest(rate_step(c.rate_rps), rate_step(g.rate_rps)))) AS facts
                FROM channels c
                JOIN platform_limits g
                  ON g.workspace_id = p_workspace_id
                 AND g.platform = c.platform
                 AND g.rate_group = c.rate_group
                LEFT JOIN channel_auth a
                  ON a.workspace_id = p_workspace_id
                 AND a.channel_id = c.channel_id
                WHERE c.workspace_id = p_workspace_id
                  AND c.channel_id = p.channel_id
                OFFSET 0
            ) AS c
        ))::text;
END $$;
