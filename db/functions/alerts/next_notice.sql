-- next_notice(target) -> the notice that this target gets now, or nothing
--
-- In the order of creation: while the target is unreachable, all its notices wait behind the first. A notice that the
-- target refused delays only later notices of the same alert.
CREATE OR REPLACE FUNCTION next_notice(p_target text)
RETURNS TABLE (workspace_id uuid, alert_id uuid, step int, kind text, attempt int, notice jsonb)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT first.workspace_id, first.alert_id, first.step, first.kind, first.attempt, first.notice
    FROM (
        SELECT n.*
        FROM alert_notices n
        WHERE n.target = p_target
          AND n.delivered_at IS NULL
          AND n.superseded_at IS NULL
          AND NOT (n.refused AND n.next_attempt_at > clock_timestamp())
          AND NOT EXISTS (
              SELECT 1
              FROM alert_notices earlier
              WHERE earlier.workspace_id = n.workspace_id
                AND earlier.alert_id = n.alert_id
                AND earlier.target = n.target
                AND earlier.step < n.step
                AND earlier.delivered_at IS NULL
                AND earlier.superseded_at IS NULL
          )
        ORDER BY n.place
        LIMIT 1
    ) AS first
    WHERE first.next_attempt_at <= clock_timestamp()
$$;
