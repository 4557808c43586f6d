-- condition_oldest_due(older_than) -> the workspaces where a delivery could have been out for longer than that
--
-- found: in how many channels. Channels that are disabled, paused or outside their window hold back what they should;
-- a rate or a cooldown that keeps a delivery waiting so long is worth a word. What is asleep although its time has come
-- counts: then nobody claims.
--
-- Cost     per channel until the first overdue delivery is found; of a channel that has none, what is live
CREATE OR REPLACE FUNCTION condition_oldest_due(p_older_than interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    WITH clock AS MATERIALIZED (
        SELECT clock_timestamp() AS now, clock_timestamp() - p_older_than AS latest
    ), overdue AS MATERIALIZED (
        SELECT c.workspace_id, c.channel_id, late.delivery_id, late.due_at
        FROM clock, workspaces w
        JOIN channels c USING (workspace_id)
        CROSS JOIN LATERAL (
            SELECT q.delivery_id, q.due_at
            FROM delivery_queue q
            WHERE q.workspace_id = c.workspace_id
              AND q.channel_id = c.channel_id
              AND q.claim_token IS NULL
              AND q.sort_at < clock.latest -- when it was queued, or of one asleep when it is due
              AND q.due_at < clock.latest
            ORDER BY q.asleep, q.sort_at
            LIMIT 1
        ) AS late
        WHERE p_older_than IS NOT NULL
          AND w.status = 'active'
          AND channel_opens_at(c, clock.now) <= clock.now
    )
    SELECT o.workspace_id, count(*), min(o.due_at),
           name_causes(o.workspace_id, (array_agg(o.delivery_id ORDER BY o.due_at))[1:5])
    FROM overdue o
    GROUP BY o.workspace_id
$$;
