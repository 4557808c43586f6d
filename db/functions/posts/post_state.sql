-- post_state(workspace_id, run_id, message_id, post_id) -> what became of a post, in one word, and its channels by status
--
-- state      staged      its media is being fetched
--            scheduled   all that waits, waits for its time
--            queued      some of it waits or is being sent
--            sent        nothing waits, and at least one channel has it
--            cancelled   nothing was sent: it was withdrawn
--            failed      nothing was sent: every channel, or its media, failed
--            suppressed  its channels had the content already
-- channels   {status: number of deliveries}
CREATE OR REPLACE FUNCTION post_state(
    p_workspace_id uuid,
    p_run_id uuid,
    p_message_id uuid,
    p_post_id uuid,
    OUT state text,
    OUT channels jsonb
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT CASE
               WHEN s.status IN ('staged', 'fetching') THEN 'staged'
               WHEN c.live > 0 THEN CASE WHEN c.live = c.scheduled THEN 'scheduled' ELSE 'queued' END
               WHEN c.sent > 0 THEN 'sent'
               WHEN c.cancelled > 0 OR s.last_error ->> 'code' = 'cancelled' THEN 'cancelled'
               WHEN c.failed > 0 OR s.status = 'failed' THEN 'failed'
               ELSE 'suppressed'
           END,
           c.by_status
    FROM (
        SELECT coalesce(sum(n.n) FILTER (WHERE NOT is_final(n.status)), 0) AS live,
               coalesce(sum(n.scheduled), 0) AS scheduled,
               coalesce(sum(n.n) FILTER (WHERE n.status = 'sent'), 0) AS sent,
               coalesce(sum(n.n) FILTER (WHERE n.status = 'cancelled'), 0) AS cancelled,
               coalesce(sum(n.n) FILTER (WHERE n.status IN ('failed_permanent', 'dead')), 0) AS failed,
               coalesce(jsonb_object_agg(n.status, n.n), '{}') AS by_status
        FROM (
            SELECT d.status, count(*) AS n,
                   count(*) FILTER (WHERE d.status = 'queued' AND d.scheduled_for > clock_timestamp()) AS scheduled
            FROM request_deliveries(p_workspace_id, p_run_id, p_message_id) AS r
            CROSS JOIN LATERAL (
                SELECT d.status, d.scheduled_for
                FROM deliveries d
                WHERE d.workspace_id = p_workspace_id
                  AND d.delivery_id = r.delivery_id
                OFFSET 0
            ) AS d
            GROUP BY d.status
        ) AS n
    ) AS c
    LEFT JOIN staged_posts s
      ON s.workspace_id = p_workspace_id
     AND s.post_id = p_post_id
$$;
