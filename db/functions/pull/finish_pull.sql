-- finish_pull(workspace_id, source_id, token, outcome, error, wait, more) -> whether the lease was still the caller's
--
-- A pull ended: sets when the next one is, gives up the lease, and updates the run; a run ends with its last source.
--
-- Outcomes     ok, unchanged    the next after the interval of the source, or at once when there is `more` to read
--              failed           after pull_delay; `wait` is what the source asked for; pull_failed says why
--              rejected         as failed: what the source sent cannot be accepted, ingress_payload_rejected says why
--              config_error     as failed: the source is misconfigured, ingress_config_error says why
--              interrupted      as if it had never been claimed
-- Each failure appends one event; a source that keeps failing waits longer each time, so these are few.
--
-- error        {"code", "message"}: stored redacted and shortened
-- Appends      pull_failed, ingress_config_error, ingress_payload_rejected
-- Locks        pull_sources, ingest_runs, by key
-- Raises       AP011 for an unknown outcome
CREATE OR REPLACE FUNCTION finish_pull(
    p_workspace_id uuid,
    p_source_id text,
    p_token uuid,
    p_outcome text,
    p_error jsonb DEFAULT NULL,
    p_wait interval DEFAULT NULL,
    p_more boolean DEFAULT false
)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _now timestamptz := clock_timestamp();
    _source record;
    _failures int;
    _error jsonb := jsonb_strip_nulls(jsonb_build_object(
        'code', quoted(p_error ->> 'code'), 'message', quoted(p_error ->> 'message', 400)));
BEGIN
    IF p_outcome NOT IN ('ok', 'unchanged', 'failed', 'rejected', 'config_error', 'interrupted') THEN
        RAISE EXCEPTION 'a pull cannot end as %', p_outcome USING ERRCODE = 'AP011';
    END IF;
    SELECT s.run_id, s.every, s.failures, s.next_pull_at, s.last_error, s.pulled_at
    INTO _source
    FROM pull_sources s
    WHERE s.workspace_id = p_workspace_id
      AND s.source_id = p_source_id
      AND s.lease_token = p_token
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;

    _failures := CASE
        WHEN p_outcome = 'interrupted' THEN _source.failures
        WHEN p_outcome IN ('ok', 'unchanged') THEN 0
        ELSE _source.failures + 1
    END;
    UPDATE pull_sources s
    SET lease_token = NULL,
        lease_until = NULL,
        run_id = NULL,
        failures = _failures,
        last_error = CASE WHEN p_outcome = 'interrupted' THEN _source.last_error ELSE nullif(_error, '{}') END,
        pulled_at = CASE WHEN p_outcome = 'interrupted' THEN _source.pulled_at ELSE _now END,
        next_pull_at = CASE
            WHEN p_outcome = 'interrupted' THEN _source.next_pull_at
            WHEN p_outcome NOT IN ('ok', 'unchanged') THEN _now + pull_delay(_source.every, _failures, p_wait)
            WHEN p_more THEN _now
            ELSE _now + _source.every
        END
    WHERE s.workspace_id = p_workspace_id
      AND s.source_id = p_source_id;

    PERFORM count_run(
        p_workspace_id, _source.run_id,
        jsonb_strip_nulls(jsonb_build_object(p_outcome, 1, 'outcome', p_outcome, 'error', nullif(_error, '{}')))
            || CASE WHEN p_outcome = 'config_error' THEN '{"skipped": 1}' ELSE '{}' END::jsonb,
        p_source_id, p_ends => true);
    INSERT INTO events (workspace_id, action, result, error, meta)
    SELECT p_workspace_id, t.action, 'error', _error, jsonb_build_object(
               'source_id', p_source_id, 'run_id', _source.run_id, 'failures', _failures, 'trace_id', (
                   SELECT r.trace_id
                   FROM ingest_runs r
                   WHERE r.workspace_id = p_workspace_id
                     AND r.run_id = _source.run_id
               ))
    FROM (VALUES ('config_error', 'ingress_config_error'::event_action),
                 ('rejected', 'ingress_payload_rejected'),
                 ('failed', 'pull_failed')) AS t (outcome, action)
    WHERE t.outcome = p_outcome;
    RETURN true;
END $$;
