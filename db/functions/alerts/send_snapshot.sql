-- send_snapshot(every, targets) -> whether a snapshot was written for the targets
--
-- Writes a notice of kind snapshot, at most one per `every`. It is stored as an alert that is closed when it opens, so
-- it is delivered like any other notice. The next snapshot replaces one that a target has not got yet.
--
-- Locks        an advisory lock; alerts, alert_notices by key
CREATE OR REPLACE FUNCTION send_snapshot(p_every interval, p_targets text[])
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _everybody constant uuid := '00000000-0000-0000-0000-000000000000';
    _now timestamptz := clock_timestamp();
    _alert_id uuid;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('evaluate_alerts', 0)) OR EXISTS (
        SELECT 1
        FROM alerts a
        WHERE a.workspace_id = _everybody
          AND a.condition = 'snapshot'
          AND a.opened_at > _now - p_every
    ) THEN
        RETURN false;
    END IF;
    UPDATE alert_notices n
    SET superseded_at = _now
    WHERE n.target = ANY (p_targets)
      AND n.kind = 'snapshot'
      AND n.delivered_at IS NULL
      AND n.superseded_at IS NULL;
    INSERT INTO alerts (workspace_id, condition, opened_at, seen_at, since, recovered_at, occurrences, steps)
    VALUES (_everybody, 'snapshot', _now, _now, _now, _now, 0, 1)
    RETURNING alert_id INTO _alert_id;
    INSERT INTO alert_notices (workspace_id, alert_id, step, target, kind, notice)
    SELECT _everybody, _alert_id, 1, t.target, 'snapshot', alert_notice(_everybody, '{"kind": "snapshot"}', true)
    FROM unnest(p_targets) AS t (target);
    RETURN true;
END $$;
