-- rates_used(workspace_id, window) -> for each rate group, provider calls per second: used in the window, and allowed
--
-- used        calls of the deliveries whose sending began within the window; a retry that sends only the rest of a plan
--             counts in full
-- allowed     null when the group has no rate
-- until       while the group is cooled down: when that ends
-- away        while its circuit is not closed: {"since", "code", "probe_at"}
-- workspace_id null: those of all workspaces
CREATE OR REPLACE FUNCTION rates_used(p_workspace_id uuid, p_window interval)
RETURNS TABLE (
    workspace_id uuid,
    platform text,
    rate_group text,
    channels bigint,
    used numeric,
    allowed numeric,
    until timestamptz,
    away jsonb
)
LANGUAGE sql
STABLE
AS $$
    WITH clock AS MATERIALIZED (
        SELECT clock_timestamp() AS now
    ), called AS MATERIALIZED (
        SELECT w.workspace_id, e.channel_id, sum(coalesce(r.calls, 1)) AS calls
        FROM clock, workspaces w
        CROSS JOIN LATERAL (
            SELECT e.channel_id, e.delivery_id
            FROM events e
            WHERE e.workspace_id = w.workspace_id
              AND e.ts > clock.now - p_window
              AND e.action = 'send_attempt'
        ) AS e
        CROSS JOIN LATERAL (
            SELECT d.rendering_id
            FROM deliveries d
            WHERE d.workspace_id = w.workspace_id
              AND d.delivery_id = e.delivery_id
            LIMIT 1
        ) AS d
        LEFT JOIN renderings r
          ON r.workspace_id = w.workspace_id
         AND r.rendering_id = d.rendering_id
        WHERE p_workspace_id IS NULL OR w.workspace_id = p_workspace_id
        GROUP BY w.workspace_id, e.channel_id
    )
    SELECT c.workspace_id, c.platform, c.rate_group, count(*),
           round((coalesce(sum(k.calls), 0) / extract(epoch FROM p_window))::numeric, 2),
           nullif(g.rate_rps, 0),
           CASE WHEN g.next_allowed_at > clock.now + interval '1 second' THEN g.next_allowed_at END,
           CASE WHEN g.circuit <> 'closed' THEN jsonb_build_object(
               'since', g.opened_at, 'code', g.outage_error ->> 'code', 'probe_at', g.probe_at) END
    FROM clock, channels c
    LEFT JOIN platform_limits g
      ON g.workspace_id = c.workspace_id
     AND g.platform = c.platform
     AND g.rate_group = c.rate_group
    LEFT JOIN called k
      ON k.workspace_id = c.workspace_id
     AND k.channel_id = c.channel_id
    WHERE p_workspace_id IS NULL OR c.workspace_id = p_workspace_id
    GROUP BY c.workspace_id, c.platform, c.rate_group, g.rate_rps, g.next_allowed_at, g.circuit, g.opened_at, g.outage_error,
             g.probe_at, clock.now
$$;
