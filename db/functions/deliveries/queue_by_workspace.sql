-- queue_by_workspace(limit) -> live deliveries of the workspaces with the most due, and of all others together
--
-- workspace        the id of one of the `limit` workspaces with most due, or 'other': as a metric label it is bounded
-- due              could be sent now, as far as the queue knows: gates and windows are not considered
-- later            waits for its time, or for a decision
-- claimed          held by a claim
-- oldest_due_seconds  how long the oldest due one has waited
--
-- Cost             reads delivery_queue once, and no delivery
CREATE OR REPLACE FUNCTION queue_by_workspace(p_limit int)
RETURNS TABLE (workspace text, due bigint, later bigint, claimed bigint, oldest_due_seconds double precision)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH each AS (
        SELECT q.workspace_id,
               count(*) FILTER (WHERE q.claim_token IS NULL AND d.is_due) AS due,
               count(*) FILTER (WHERE q.claim_token IS NULL AND NOT d.is_due) AS later,
               count(*) FILTER (WHERE q.claim_token IS NOT NULL) AS claimed,
               min(q.sort_at) FILTER (WHERE q.claim_token IS NULL AND d.is_due) AS oldest_at
        FROM delivery_queue q
        CROSS JOIN LATERAL (SELECT NOT q.asleep OR q.sort_at <= now()) AS d (is_due)
        GROUP BY q.workspace_id
    ), ranked AS (
        SELECT e.*, row_number() OVER (ORDER BY e.due DESC, e.claimed DESC, e.later DESC, e.workspace_id) AS place
        FROM each e
    )
    SELECT CASE WHEN r.place <= p_limit THEN r.workspace_id::text ELSE 'other' END AS workspace,
           sum(r.due)::bigint, sum(r.later)::bigint, sum(r.claimed)::bigint,
           coalesce(extract(epoch FROM clock_timestamp() - min(r.oldest_at)), 0)::double precision
    FROM ranked r
    GROUP BY 1
$$;
