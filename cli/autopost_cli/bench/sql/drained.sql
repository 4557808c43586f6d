-- What a finished drain must look like: everything sent, three events each and in order, nothing waiting.
SELECT count(*) AS deliveries,
       count(*) FILTER (WHERE d.status <> 'sent') AS unsent,
       count(*) FILTER (WHERE told.story IS DISTINCT FROM '{enqueue,send_attempt,sent}'
                           OR d.event_count <> 3
                           OR d.attempt <> told.attempt) AS untrue,
       coalesce(sum(told.events), 0)::bigint AS events,
       (SELECT count(*) FROM delivery_queue q WHERE q.workspace_id = $1) AS queued,
       next_due_at($1) = 'infinity' AS idle
FROM deliveries d
LEFT JOIN (
    SELECT e.delivery_id, count(*) AS events, max(e.attempt) AS attempt,
           array_agg(e.action::text ORDER BY e.seq) AS story
    FROM events e
    WHERE e.workspace_id = $1
      AND e.delivery_id IS NOT NULL
    GROUP BY e.delivery_id
) AS told USING (delivery_id)
WHERE d.workspace_id = $1
