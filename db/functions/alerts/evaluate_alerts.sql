-- evaluate_alerts(thresholds, window, remind, targets, with_snapshot)
-- -> the notices that were written, one row per alert
--
-- Finds the conditions that hold now (alert_conditions) and opens, reminds of or closes alerts. Each change writes one
-- notice per target in the same transaction. An alert recovers when its condition was not found for a whole window. So
-- a condition that comes and goes is one alert, and two alerts of one condition are at least a window apart.
--
-- opened       a condition without an open alert
-- reminder     the condition lasts: `remind` after the last notice, or a window after it when it is ten times as bad
-- recovered    the condition was not found for a window
-- No rows      when another call is running
--
-- The next notice of an alert replaces a reminder that a target has not got yet; no other notice is dropped.
--
-- Locks        an advisory lock; alerts, alert_notices by key. No table of the queue.
CREATE OR REPLACE FUNCTION evaluate_alerts(
    p_thresholds jsonb,
    p_window interval DEFAULT '5 minutes',
    p_remind interval DEFAULT '4 hours',
    p_targets text[] DEFAULT '{}',
    p_with_snapshot boolean DEFAULT false
)
RETURNS TABLE (alert_id uuid, workspace_id uuid, condition text, kind text, found bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _found jsonb;
    _now timestamptz;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('evaluate_alerts', 0)) THEN
        RETURN;
    END IF;
    SELECT coalesce(jsonb_agg(to_jsonb(c)), '[]') INTO _found FROM alert_conditions(p_thresholds) AS c;
    _now := clock_timestamp();

    UPDATE alerts a
    SET seen_at = _now,
        occurrences = f.found,
        threshold = f.threshold,
        causes = f.causes,
        since = least(a.since, f.since)
    FROM jsonb_to_recordset(_found)
        AS f (condition text, workspace_id uuid, found bigint, threshold numeric, since timestamptz, causes jsonb)
    WHERE a.workspace_id = f.workspace_id
      AND a.condition = f.condition
      AND a.recovered_at IS NULL;

    RETURN QUERY
    WITH opened AS (
        INSERT INTO alerts (workspace_id, condition, opened_at, seen_at, since, occurrences, threshold, causes, told,
                            steps)
        SELECT f.workspace_id, f.condition, _now, _now, coalesce(f.since, _now), f.found, f.threshold, f.causes,
               f.found, 1
        FROM jsonb_to_recordset(_found)
            AS f (condition text, workspace_id uuid, found bigint, threshold numeric, since timestamptz, causes jsonb)
        ON CONFLICT (workspace_id, condition) WHERE recovered_at IS NULL DO NOTHING
        RETURNING *
    ), reminded AS (
        UPDATE alerts a
        SET reminded_at = _now,
            told = a.occurrences,
            steps = a.steps + 1
        WHERE a.recovered_at IS NULL
          AND a.seen_at = _now
          AND (coalesce(a.reminded_at, a.opened_at) <= _now - p_remind
               OR (a.occurrences >= 10 * a.told AND coalesce(a.reminded_at, a.opened_at) <= _now - p_window))
        RETURNING *
    ), recovered AS (
        UPDATE alerts a
        SET recovered_at = _now,
            steps = a.steps + 1
        WHERE a.recovered_at IS NULL
          AND a.seen_at < _now
          AND a.seen_at <= _now - p_window
        RETURNING *
    ), moved AS MATERIALIZED (
        SELECT 'recovered' AS kind, r.* FROM recovered r
        UNION ALL
        SELECT 'reminder', m.* FROM reminded m
        UNION ALL
        SELECT 'opened', o.* FROM opened o
    ), replaced AS (
        UPDATE alert_notices n
        SET superseded_at = _now
        FROM moved m
        WHERE n.workspace_id = m.workspace_id
          AND n.alert_id = m.alert_id
          AND n.target = ANY (p_targets)
          AND n.kind = 'reminder'
          AND n.delivered_at IS NULL
          AND n.superseded_at IS NULL
    ), noted AS (
        INSERT INTO alert_notices (workspace_id, alert_id, step, target, kind, notice)
        SELECT m.workspace_id, m.alert_id, m.steps, t.target, m.kind, alert_notice(m.workspace_id, jsonb_build_object(
                   'kind', m.kind, 'condition', m.condition, 'count', m.occurrences, 'threshold', m.threshold,
                   'since', m.since, 'opened_at', m.opened_at, 'recovered_at', m.recovered_at, 'causes', m.causes),
                   p_with_snapshot AND m.kind <> 'recovered')
        FROM moved m
        CROSS JOIN unnest(p_targets) AS t (target)
        ORDER BY m.opened_at, m.condition, m.workspace_id
    )
    SELECT m.alert_id, m.workspace_id, m.condition, m.kind, m.occurrences
    FROM moved m;
END $$;
