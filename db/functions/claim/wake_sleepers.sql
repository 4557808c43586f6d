-- wake_sleepers(workspace_id, channel_ids, now) -> how many deliveries became due
--
-- A delivery that has come due takes its place by age among those that wait. Each is written once for that.
CREATE OR REPLACE FUNCTION wake_sleepers(p_workspace_id uuid, p_channel_ids uuid[], p_now timestamptz)
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _woken int;
BEGIN
    WITH due AS MATERIALIZED (
        SELECT q.workspace_id, q.delivery_id, due.low_water
        FROM unnest(p_channel_ids) AS c (channel_id)
        CROSS JOIN LATERAL (
            SELECT s.workspace_id, s.delivery_id
            FROM delivery_queue s
            WHERE s.workspace_id = p_workspace_id
              AND s.channel_id = c.channel_id
              AND s.asleep
              AND s.sort_at <= p_now
              AND s.claim_token IS NULL
            ORDER BY s.sort_at
            LIMIT 500
        ) AS d
        JOIN delivery_queue q
          ON q.workspace_id = d.workspace_id
         AND q.delivery_id = d.delivery_id
        CROSS JOIN LATERAL (
            SELECT d.low_water
            FROM channel_due d
            WHERE d.workspace_id = p_workspace_id
              AND d.channel_id = q.channel_id
            OFFSET 0
        ) AS due
        FOR UPDATE OF q SKIP LOCKED
    )
    UPDATE delivery_queue q
    SET asleep = false,
        sort_at = greatest(d.created_at, due.low_water)
    FROM due
    JOIN deliveries d
      ON d.workspace_id = due.workspace_id
     AND d.delivery_id = due.delivery_id
    WHERE q.workspace_id = due.workspace_id
      AND q.delivery_id = due.delivery_id;

    GET DIAGNOSTICS _woken = ROW_COUNT;
    RETURN _woken;
END $$;
