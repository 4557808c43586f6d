-- What a finished drain must look like: everything sent, three events each, nothing waiting. That each row is what its
-- events say is verify_deliveries' to judge.
SELECT count(*) AS deliveries,
       count(*) FILTER (WHERE d.status <> 'sent') AS unsent,
       count(*) FILTER (WHERE d.event_count <> 3) AS untold,
       (
           SELECT count(*)
           FROM events e
           WHERE e.workspace_id = $1
             AND e.delivery_id IS NOT NULL
       ) AS events,
       (SELECT count(*) FROM delivery_queue q WHERE q.workspace_id = $1) AS queued,
       next_due_at($1) = 'infinity' AS idle
FROM deliveries d
WHERE d.workspace_id = $1
