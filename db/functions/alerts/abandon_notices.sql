-- abandon_notices(targets, after)
-- -> how many notices are given up because their target is no longer configured, by target
--
-- targets      the configured ones; a notice for any other target is given up when it has waited for `after`, so a
--              replica that does not know a new target yet gives up nothing of it
-- Stays        the row, superseded and with last_error target_removed; retention deletes it with its alert
-- Nothing      when another call is running
--
-- Locks        an advisory lock; alert_notices by key
CREATE OR REPLACE FUNCTION abandon_notices(p_targets text[], p_after interval)
RETURNS TABLE (target text, notices bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('evaluate_alerts', 0)) THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH gone AS (
        UPDATE alert_notices n
        SET superseded_at = clock_timestamp(),
            last_error = 'target_removed'
        WHERE n.target <> ALL (p_targets)
          AND n.created_at <= clock_timestamp() - p_after
          AND n.delivered_at IS NULL
          AND n.superseded_at IS NULL
        RETURNING n.target
    )
    SELECT g.target, count(*)
    FROM gone g
    GROUP BY g.target
    ORDER BY g.target;
END $$;
