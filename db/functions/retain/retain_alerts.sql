-- retain_alerts(keep, limit) -> how many alerts that were over longer ago are forgotten, with their notices
--
-- Stays     what a target has still to be told
-- Locks     alerts by key, past those that somebody holds
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
