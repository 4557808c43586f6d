-- wake_sleepers(workspace_ids, channel_ids, now) -> how many deliveries became due
--
-- A delivery that has come due takes its place by age among those that wait. Each is written once for that.
--
-- Locks     delivery_queue by key, SKIP LOCKED; the caller holds the channels
CREATE OR REPLACE FUNCTION wake_sleepers(p_workspace_ids uuid[], p_channel_ids uuid[], p_now timestamptz)
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _places tid[];
    _sort_ats timestamptz[];
BEGIN
    SELECT array_agg(q.place), array_agg(greatest(d.created_at, due.low_water))
    INTO _places, _sort_ats
    FROM unnest(p_workspace_ids, p_channel_ids) AS c (workspace_id, channel_id)
    CROSS JOIN LATERAL (
        SELECT s.delivery_id
        FROM delivery_queue s
        WHERE s.workspace_id = c.workspace_id
          AND s.channel_id = c.channel_id
          AND s.asleep
          AND s.sort_at <= p_now
          AND s.claim_token IS NULL
        ORDER BY s.sort_at
        LIMIT 500
    ) AS s
    CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
        SELECT q.ctid AS place, q.asleep AND q.claim_token IS NULL AS is_asleep
        FROM delivery_queue q
        WHERE q.workspace_id = c.workspace_id
          AND q.delivery_id = s.delivery_id
        FOR NO KEY UPDATE SKIP LOCKED
        OFFSET 0
    ) AS q
    CROSS JOIN LATERAL (
        SELECT d.low_water
        FROM channel_due d
        WHERE d.workspace_id = c.workspace_id
          AND d.channel_id = c.channel_id
        OFFSET 0
    ) AS due
    CROSS JOIN LATERAL (
        SELECT d.created_at
        FROM deliveries d
        WHERE d.workspace_id = c.workspace_id
          AND d.delivery_id = s.delivery_id
        OFFSET 0
    ) AS d
    WHERE q.is_asleep;
    IF _places IS NULL THEN
        RETURN 0;
    END IF;

    UPDATE delivery_queue q
    SET asleep = false,
        sort_at = s.sort_at
    FROM unnest(_places, _sort_ats) AS s (place, sort_at)
    WHERE q.ctid = s.place;
    RETURN cardinality(_places);
END $$;
