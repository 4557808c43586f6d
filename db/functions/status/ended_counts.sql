-- ended_counts(workspace_id, history) -> how many deliveries ended or are dead letters, by status; one row
--
-- counts    of dead and failed_permanent; with history also of sent and deduped
-- skipped   how many of them an operator has looked at
-- Cost      the dead letters once; with history every delivery of the workspace
CREATE OR REPLACE FUNCTION ended_counts(p_workspace_id uuid, p_history boolean)
RETURNS TABLE (counts jsonb, skipped numeric)
LANGUAGE sql
STABLE ROWS 1
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(dead.counts, '{}') || coalesce(past.counts, '{}'), dead.skipped
    FROM (
        SELECT jsonb_object_agg(g.status, g.deliveries) AS counts, sum(g.skipped) AS skipped
        FROM (
            SELECT l.status, count(*) AS deliveries, count(l.skipped_at) AS skipped
            FROM dead_letters l
            WHERE l.workspace_id = p_workspace_id
            GROUP BY l.status
        ) AS g
    ) AS dead
    CROSS JOIN (
        SELECT jsonb_object_agg(p.status, p.deliveries) AS counts
        FROM (
            SELECT s.status, count(d.delivery_id) AS deliveries
            FROM unnest('{sent,deduped}'::delivery_status[]) AS s (status)
            LEFT JOIN deliveries d
              ON d.workspace_id = p_workspace_id
             AND d.status = s.status
            WHERE p_history
            GROUP BY s.status
        ) AS p
    ) AS past
$$;
