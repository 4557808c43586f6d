-- catch_up_excess(workspace_id, channel_ids, now) -> what the catch-up policies of these channels would drop
--
-- all           nothing
-- newest N      all but the N posts seen last
-- drop_older X  posts last seen longer ago than X
--
-- A post's age counts from messages.last_seen_at, so a repost is recent again. Only the backlog counts, also for N:
-- not posts scheduled for later, not posts held for an operator, and not posts of which a part was sent.
--
-- Cost          grows with what waits in channels that have such a policy; `all` reads nothing
CREATE OR REPLACE FUNCTION catch_up_excess(p_workspace_id uuid, p_channel_ids uuid[], p_now timestamptz)
RETURNS TABLE (delivery_id uuid, message_id uuid, last_seen_at timestamptz, policy jsonb)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT piled.delivery_id, piled.message_id, piled.last_seen_at, piled.catch_up
    FROM (
        SELECT d.delivery_id, d.message_id, m.last_seen_at, c.catch_up,
               row_number() OVER (PARTITION BY d.channel_id
                                  ORDER BY m.last_seen_at DESC, d.created_at DESC, d.delivery_id DESC) AS place
        FROM channels c
        JOIN delivery_queue q
          ON q.workspace_id = c.workspace_id
         AND q.channel_id = c.channel_id
         AND q.claim_token IS NULL
        CROSS JOIN LATERAL (
            -- One probe per waiting delivery, even where the planner would rather read them all.
            SELECT d.delivery_id, d.message_id, d.channel_id, d.status, d.not_before, d.scheduled_for, d.next_retry_at,
                   d.render_meta, d.created_at
            FROM deliveries d
            WHERE d.workspace_id = q.workspace_id
              AND d.delivery_id = q.delivery_id
            LIMIT 1
        ) AS d
        JOIN messages m
          ON m.workspace_id = q.workspace_id
         AND m.message_id = d.message_id
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = ANY (p_channel_ids)
          AND c.catch_up ->> 'policy' <> 'all'
          AND d.status IN ('queued', 'retry')
          AND greatest(d.not_before, d.scheduled_for) <= p_now
          AND NOT (d.status = 'retry' AND d.next_retry_at = 'infinity')
          AND NOT d.render_meta ? 'series_progress'
    ) AS piled
    WHERE CASE piled.catch_up ->> 'policy'
        WHEN 'newest' THEN piled.place > (piled.catch_up ->> 'keep')::int
        WHEN 'drop_older' THEN piled.last_seen_at < p_now - (piled.catch_up ->> 'older_than')::interval
    END
$$;
