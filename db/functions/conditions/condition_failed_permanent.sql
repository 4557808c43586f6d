-- condition_failed_permanent(more_than) -> the workspaces with more permanent failures within ten minutes
--
-- What a catch-up policy dropped was dropped on purpose and does not count; nor does what no plan could be made for
-- (validation_failed): that is told to the sender.
CREATE OR REPLACE FUNCTION condition_failed_permanent(p_more_than bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT w.workspace_id, g.failed, g.since, name_causes(w.workspace_id, g.first)
    FROM workspaces w
    CROSS JOIN LATERAL (
        SELECT count(*) AS failed, min(g.given_up_at) AS since,
               (array_agg(g.delivery_id ORDER BY g.given_up_at))[1:100] AS first
        FROM dead_letters g
        CROSS JOIN LATERAL (
            SELECT d.last_error ->> 'code' AS code
            FROM deliveries d
            WHERE d.workspace_id = g.workspace_id
              AND d.delivery_id = g.delivery_id
            LIMIT 1
        ) AS d
        WHERE g.status = 'failed_permanent'
          AND g.workspace_id = w.workspace_id
          AND g.given_up_at > (SELECT clock_timestamp() - interval '10 minutes')
          AND (d.code IN ('catch_up_dropped', 'validation_failed')) IS NOT TRUE
    ) AS g
    WHERE w.status <> 'disabled'
      AND g.failed > p_more_than
$$;
