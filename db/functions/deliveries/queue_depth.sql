-- queue_depth() -> live deliveries by status, and how long the oldest due one has waited
CREATE OR REPLACE FUNCTION queue_depth()
RETURNS TABLE (status text, deliveries bigint, oldest_due_seconds double precision)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT s.status::text, count(q.delivery_id),
           greatest(coalesce(extract(epoch FROM clock_timestamp() - min(q.due_at)
                        FILTER (WHERE NOT q.asleep AND q.claim_token IS NULL)), 0), 0)::double precision
    FROM unnest('{queued,claimed,sending,retry}'::delivery_status[]) AS s (status)
    LEFT JOIN delivery_queue q ON q.status = s.status
    GROUP BY s.status
$$;
