-- why_closed_groups(workspace_id, platforms, rate_groups, now, tolerance) -> the rate groups whose gate is closed
--
-- base      when the gate opens by itself
-- cooling   the group cools down, rather than being between two slots: it has no rate, or is closed for longer than
--           slots alone would close it (take_slot goes at most 5 s ahead), or a provider asked for the wait at the
--           moment at which the gate was set
-- code      of the error that asked for the wait
CREATE OR REPLACE FUNCTION why_closed_groups(
    p_workspace_id uuid,
    p_platforms text[],
    p_rate_groups text[],
    p_now timestamptz,
    p_tolerance interval
)
RETURNS TABLE (
    platform text,
    rate_group text,
    rate_rps numeric,
    updated_at timestamptz,
    base timestamptz,
    code text,
    cooling boolean
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT g.platform, g.rate_group, g.rate_rps, g.updated_at, gate.base, asked.code,
           gate.step = interval '0' OR gate.base > p_now + gate.step + interval '5 seconds'
               OR asked.code IS NOT NULL AS cooling
    FROM platform_limits g
    CROSS JOIN LATERAL slot_gate(g.next_allowed_at, g.rate_rps, p_now, p_tolerance) AS gate
    LEFT JOIN LATERAL (
        SELECT coalesce(e.error ->> 'code', 'unknown') AS code
        FROM events e
        JOIN channels c
          ON c.workspace_id = e.workspace_id
         AND c.channel_id = e.channel_id
         AND c.platform = g.platform
         AND c.rate_group = g.rate_group
        WHERE gate.room = 0
          AND e.workspace_id = p_workspace_id
          AND e.result = 'error'
          AND e.ts BETWEEN g.updated_at - interval '1 second' AND g.updated_at + interval '5 seconds'
          AND ((e.error ->> 'scope' = 'platform'
                AND (e.error ? 'retry_after_ms' OR e.error ->> 'category' = 'PERMANENT'))
               OR e.meta @> '{"group_cooled": true}')
        ORDER BY e.ts DESC
        LIMIT 1
    ) AS asked ON true
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = ANY (p_platforms)
      AND g.rate_group = ANY (p_rate_groups)
      AND gate.room = 0
$$;
