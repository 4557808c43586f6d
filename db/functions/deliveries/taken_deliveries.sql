-- taken_deliveries(workspace_id) -> the deliveries that are claimed or being sent, and when their lease ends
--
-- Reads from each channel as many as channel_counters has in flight, along its index: those in flight were the oldest
-- that waited. One that a wrong counter hides is found after recount().
--
-- Cost      grows with what is claimed, not with what waits
CREATE OR REPLACE FUNCTION taken_deliveries(p_workspace_id uuid)
RETURNS TABLE (delivery_id uuid, channel_id uuid, status delivery_status, lease_until timestamptz)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT q.delivery_id, q.channel_id, q.status, q.lease_until
    FROM (
        SELECT k.channel_id, sum(CASE k.side WHEN 'started' THEN k.total ELSE -k.total END)::bigint AS flying
        FROM channel_counters k
        WHERE k.workspace_id = p_workspace_id
        GROUP BY k.channel_id
    ) AS f
    CROSS JOIN LATERAL (
        SELECT q.delivery_id, q.channel_id, q.status, q.lease_until
        FROM delivery_queue q
        WHERE q.workspace_id = p_workspace_id
          AND q.channel_id = f.channel_id
          AND q.status = 'sending'
        ORDER BY q.asleep, q.sort_at, q.delivery_id
        LIMIT greatest(f.flying, 0)
    ) AS q
    UNION ALL
    SELECT q.delivery_id, q.channel_id, q.status, q.lease_until
    FROM delivery_queue q
    WHERE q.workspace_id = p_workspace_id
      AND q.by_hand;
END $$;
