-- retain_alerts(keep, limit) -> how many alerts that ended longer ago are deleted, with their notices
--
-- Stays     a notice that a target has still to get, with its alert
-- Locks     alerts by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_alerts(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT a.workspace_id, a.alert_id
        FROM alerts a
        WHERE a.recovered_at < (SELECT clock_timestamp() - p_keep)
          AND NOT EXISTS (
              SELECT 1
              FROM alert_notices n
              WHERE n.workspace_id = a.workspace_id
                AND n.alert_id = a.alert_id
                AND n.delivered_at IS NULL
                AND n.superseded_at IS NULL
          )
        ORDER BY a.recovered_at
        LIMIT p_limit
        FOR UPDATE OF a SKIP LOCKED
    ), gone AS (
        DELETE FROM alerts t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.alert_id = o.alert_id
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
