-- condition_dead(at_least) -> the workspaces with so many dead deliveries that no operator has looked at
--
-- Skipped ones do not count (see skip). Null switches the condition off, as for every condition.
CREATE OR REPLACE FUNCTION condition_dead(p_at_least bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT w.workspace_id, g.dead, g.since, name_causes(w.workspace_id, g.first)
    FROM workspaces w
    CROSS JOIN LATERAL (
        SELECT count(*) AS dead, min(g.given_up_at) AS since,
               (array_agg(g.delivery_id ORDER BY g.given_up_at))[1:100] AS first
        FROM dead_letters g
        WHERE g.status = 'dead'
          AND g.workspace_id = w.workspace_id
          AND g.skipped_at IS NULL
    ) AS g
    WHERE w.status <> 'disabled'
      AND g.dead > 0
      AND g.dead >= p_at_least
$$;
