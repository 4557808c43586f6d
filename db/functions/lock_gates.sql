-- lock_gates(workspace_id, outcomes)
--
-- Locks, before any delivery, the groups and channels that these outcomes will write. An outcome that touches
-- neither locks neither, which is nearly every one.
CREATE OR REPLACE FUNCTION lock_gates(p_workspace_id uuid, p_outcomes jsonb)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _groups text[];
    _channels uuid[];
BEGIN
    SELECT array_agg(DISTINCT c.platform || ' ' || c.rate_group) FILTER (WHERE o.scope = 'platform'),
           array_agg(DISTINCT c.channel_id) FILTER (WHERE o.scope = 'channel'
                                                       OR (o.result = 'sent' AND c.error_streak <> 0))
    INTO _groups, _channels
    FROM jsonb_to_recordset(p_outcomes) AS o (delivery_id uuid, result text, scope text)
    JOIN deliveries d
      ON d.workspace_id = p_workspace_id
     AND d.delivery_id = o.delivery_id
    JOIN channels c
      ON c.workspace_id = d.workspace_id
     AND c.channel_id = d.channel_id
    WHERE o.result = 'failed' OR c.error_streak <> 0;

    PERFORM 1
    FROM platform_limits g
    WHERE g.workspace_id = p_workspace_id
      AND g.platform || ' ' || g.rate_group = ANY (_groups)
    ORDER BY g.platform, g.rate_group
    FOR UPDATE;

    PERFORM 1
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = ANY (_channels)
    ORDER BY c.channel_id
    FOR NO KEY UPDATE;
END $$;
