-- condition_oldest_due(older_than) -> the workspaces where a delivery has been ready to send for longer than that
--
-- found: in how many channels. Channels that are disabled, paused or outside their window hold posts back as intended;
-- a rate or a cooldown that delays a delivery for so long is worth an alert. A row that is asleep past its time counts:
-- then no claim runs.
--
-- Cost     per channel up to the first overdue delivery; in a channel without one, all live deliveries
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
              AND q.sort_at < clock.latest -- when it was queued; of a sleeper, when it is due
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
