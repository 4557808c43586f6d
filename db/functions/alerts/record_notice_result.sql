-- record_notice_result(workspace_id, alert_id, step, target, outcome, error, wait, base) -> void
--
-- delivered      the target has the notice
-- refused        the target answers and does not accept this notice: it is retried alone, with growing waits
-- unreachable    the target does not answer: all its notices wait behind this one (next_notice) and stay in order
--
-- The wait doubles from `base` to 150 times that, and is never shorter than what the target asked for. The number of
-- attempts has no limit: the status page and the metrics show what cannot be delivered.
--
-- Locks          alerts, alert_notices, by key: in that order, as evaluate_alerts does
-- Raises         AP011 for an unknown outcome
CREATE OR REPLACE FUNCTION record_notice_result(
    p_workspace_id uuid,
    p_alert_id uuid,
    p_step int,
    p_target text,
    p_outcome text,
    p_error text DEFAULT NULL,
    p_wait interval DEFAULT NULL,
    p_base interval DEFAULT '2 seconds'
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF p_outcome NOT IN ('delivered', 'refused', 'unreachable') THEN
        RAISE EXCEPTION 'a notice cannot end as %', p_outcome USING ERRCODE = 'AP011';
    END IF;
    UPDATE alerts a
    SET delivered_at = clock_timestamp()
    WHERE p_outcome = 'delivered'
      AND a.workspace_id = p_workspace_id
      AND a.alert_id = p_alert_id
      AND a.delivered_at IS NULL;

    UPDATE alert_notices n
    SET attempt = n.attempt + 1,
        -- A notice that was replaced while in transit was delivered all the same.
        superseded_at = CASE WHEN p_outcome <> 'delivered' THEN n.superseded_at END,
        delivered_at = CASE WHEN p_outcome = 'delivered' THEN clock_timestamp() END,
        last_error = left(p_error, 200),
        refused = p_outcome = 'refused',
        next_attempt_at = clock_timestamp()
            + greatest(p_wait, p_base * least(2 ^ least(n.attempt, 20), 150))
    WHERE n.workspace_id = p_workspace_id
      AND n.alert_id = p_alert_id
      AND n.step = p_step
      AND n.target = p_target
      AND n.delivered_at IS NULL;
END $$;
