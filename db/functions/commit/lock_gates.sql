-- lock_gates(workspace_id, outcomes) -> the ids of the locked channels, and the places (ctid) of the locked groups
--
-- Locks, before any delivery, the groups and channels that these outcomes will write. An outcome that writes neither
-- locks neither, which is nearly every one. Of a group whose circuit is in doubt every outcome is of interest. Nothing outside of the result may be written: the caller holds deliveries
-- by then, and would lock it too late. A streak that begins later does not concern these outcomes, and a channel that
-- gets another group meanwhile was refused in the one it had.
CREATE OR REPLACE FUNCTION lock_gates(p_workspace_id uuid, p_outcomes jsonb, OUT channels uuid[], OUT groups tid[])
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _cooling uuid[];
    _failing uuid[];
    _arrived uuid[];
    _ended uuid[];
BEGIN
    -- The channels are looked up afterwards, by key: in a join, a planner that estimates one row would pair every
    -- channel of the workspace with every outcome.
    SELECT coalesce(array_agg(DISTINCT d.channel_id) FILTER (
               WHERE o.result = 'failed' AND (o.scope = 'platform' OR is_token_code(o.code))), '{}'),
           coalesce(array_agg(DISTINCT d.channel_id) FILTER (
               WHERE o.result = 'failed' AND (o.scope = 'channel' OR o.code = 'chat_migrated')), '{}'),
           coalesce(array_agg(DISTINCT d.channel_id) FILTER (WHERE o.result = 'sent'), '{}'),
           coalesce(array_agg(DISTINCT d.channel_id), '{}')
    INTO _cooling, _failing, _arrived, _ended
    FROM jsonb_to_recordset(p_outcomes) AS o (delivery_id uuid, result text, scope text, code text)
    CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
        SELECT d.channel_id
        FROM deliveries d
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = o.delivery_id
        OFFSET 0
    ) AS d;

    groups := ARRAY(
        SELECT g.ctid
        FROM platform_limits g
        WHERE g.workspace_id = p_workspace_id
          AND (g.platform, g.rate_group) IN (
              SELECT c.platform, c.rate_group
              FROM channels c
              WHERE c.workspace_id = p_workspace_id
                AND c.channel_id = ANY (
                    CASE WHEN g.failed_deliveries <> '{}' OR g.circuit = 'half' THEN _ended ELSE _cooling END)
          )
        ORDER BY g.platform, g.rate_group
        FOR UPDATE
    );

    channels := ARRAY(
        SELECT c.channel_id
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = ANY (_failing || _arrived)
          AND (c.channel_id = ANY (_failing) OR c.error_streak <> 0)
        ORDER BY c.channel_id
        FOR NO KEY UPDATE
    );
END $$;
