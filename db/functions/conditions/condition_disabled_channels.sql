-- condition_disabled_channels(at_least) -> the workspaces with so many channels that were disabled after failures
--
-- A channel that an operator disabled counts only when it had failures before: enabling it clears them.
--
-- causes: the five that failed most, each with the code of the failure
CREATE OR REPLACE FUNCTION condition_disabled_channels(p_at_least bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    WITH disabled AS MATERIALIZED (
        SELECT c.workspace_id, count(*) AS channels,
               (array_agg(c.channel_id ORDER BY c.error_streak DESC, c.channel_id))[1:5] AS first
        FROM channels c
        JOIN workspaces w USING (workspace_id)
        WHERE c.error_streak > 0
          AND NOT c.enabled
          AND w.status <> 'disabled'
        GROUP BY c.workspace_id
        HAVING count(*) >= p_at_least
    )
    SELECT d.workspace_id, d.channels, min(closed.ts), jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'name', coalesce(c.title, c.platform || ' ' || c.channel_id),
               'code', closed.reason, 'id', c.channel_id)) ORDER BY c.title, c.channel_id)
    FROM disabled d
    JOIN channels c
      ON c.workspace_id = d.workspace_id
     AND c.channel_id = ANY (d.first)
    LEFT JOIN LATERAL (
        SELECT e.ts, coalesce(e.error ->> 'code', e.meta ->> 'reason') AS reason
        FROM events e
        WHERE e.workspace_id = c.workspace_id
          AND e.channel_id = c.channel_id
          AND e.delivery_id IS NULL
          AND e.action = 'channel_disabled'
        ORDER BY e.ts DESC
        LIMIT 1
    ) AS closed ON true
    GROUP BY d.workspace_id, d.channels
$$;
