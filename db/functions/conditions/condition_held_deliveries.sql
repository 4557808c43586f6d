-- condition_held_deliveries(at_least) -> the workspaces with so many deliveries that wait for an operator
--
-- Perhaps sent: the platform did not answer. Publications have a condition of their own.
--
-- Cost     one probe per channel, and what is held
CREATE OR REPLACE FUNCTION condition_held_deliveries(p_at_least bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT h.workspace_id, h.held, h.since, name_causes(h.workspace_id, h.first)
    FROM (
        SELECT c.workspace_id, count(*) AS held, min(d.updated_at) AS since,
               (array_agg(d.delivery_id ORDER BY d.updated_at, d.delivery_id))[1:100] AS first
        FROM channels c
        JOIN workspaces w USING (workspace_id)
        CROSS JOIN LATERAL (
            SELECT q.workspace_id, q.delivery_id, q.slow
            FROM delivery_queue q
            WHERE q.channel_id = c.channel_id
              AND q.asleep
              AND q.sort_at = 'infinity'
            OFFSET 0
        ) AS q
        CROSS JOIN LATERAL (
            SELECT d.delivery_id, d.updated_at, d.hold_reason
            FROM deliveries d
            WHERE d.workspace_id = q.workspace_id
              AND d.delivery_id = q.delivery_id
            OFFSET 0
        ) AS d
        WHERE q.workspace_id = c.workspace_id
          AND NOT q.slow
          AND d.hold_reason IS NOT NULL
          AND w.status <> 'disabled'
        GROUP BY c.workspace_id
        HAVING count(*) >= p_at_least
    ) AS h
$$;
