-- why_behind(workspace_id, delivery_id, now) -> how many deliveries of its channel are sent before this one
--
-- In the order of the claim: by age among those that are due; the next claim (wake_sleepers) sorts in one that has just
-- come due. 0 for the next one.
--
-- Cost         the deliveries before it, by index
CREATE OR REPLACE FUNCTION why_behind(p_workspace_id uuid, p_delivery_id uuid, p_now timestamptz)
RETURNS bigint
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH mine AS MATERIALIZED (
        SELECT q.channel_id, q.delivery_id, c.low_water,
               CASE WHEN q.asleep THEN greatest(d.created_at, c.low_water) ELSE q.sort_at END AS sort_at
        FROM delivery_queue q
        JOIN deliveries d USING (workspace_id, delivery_id)
        JOIN channel_due c
          ON c.workspace_id = q.workspace_id
         AND c.channel_id = q.channel_id
        WHERE q.workspace_id = p_workspace_id
          AND q.delivery_id = p_delivery_id
    )
    -- The workspace is checked last: the planner must not prefer its key to the channel's index.
    SELECT (
        SELECT count(*) FILTER (WHERE q.workspace_id = p_workspace_id)
        FROM delivery_queue q
        WHERE q.channel_id = m.channel_id
          AND NOT q.asleep
          AND q.sort_at >= m.low_water
          AND (q.sort_at, q.delivery_id) < (m.sort_at, m.delivery_id)
          AND q.claim_token IS NULL
    ) + (
        SELECT count(*)
        FROM (
            SELECT q.workspace_id, q.delivery_id
            FROM delivery_queue q
            WHERE q.channel_id = m.channel_id
              AND q.asleep
              AND q.sort_at <= p_now
              AND q.claim_token IS NULL
            OFFSET 0
        ) AS q
        CROSS JOIN LATERAL (
            SELECT d.created_at
            FROM deliveries d
            WHERE d.workspace_id = q.workspace_id
              AND d.delivery_id = q.delivery_id
            OFFSET 0
        ) AS d
        WHERE q.workspace_id = p_workspace_id
          AND (greatest(d.created_at, m.low_water), q.delivery_id) < (m.sort_at, m.delivery_id)
    )
    FROM mine m
$$;
