-- record_probe(workspace_id, platform, rate_group, probe_at, answered, error, run_id) -> the circuit after it
--
-- What the platform did when it was asked who the bot is.
--
-- probe_at    as take_probes returned it
-- answered    it said so, or refused definitely (4xx)
-- error       else: {"code", …}
-- Returns     half     it answers again: a trial may follow, see claim_trial
--             open     it does not
--             closed   it was asked about a delivery that failed twice, and answers: the failure is the delivery's own
--             null     this probe counts no more: something else has happened since
-- Changes     open -> half, closed -> open
-- Appends     group_opened
-- Locks       platform_limits by key
CREATE OR REPLACE FUNCTION record_probe(
    p_workspace_id uuid,
    p_platform text,
    p_rate_group text,
    p_probe_at timestamptz,
    p_answered boolean,
    p_error jsonb DEFAULT NULL,
    p_run_id uuid DEFAULT NULL
)
RETURNS circuit_state
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _error jsonb := bounded_error(coalesce(p_error, '{"code": "unknown"}'));
    _circuit circuit_state;
BEGIN
    SELECT g.circuit
    INTO _circuit
    FROM platform_limits g
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = p_platform
      AND g.rate_group = p_rate_group
      AND g.circuit <> 'half'
      AND g.probe_at = p_probe_at
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF _circuit = 'closed' AND NOT p_answered THEN
        PERFORM open_circuit(p_workspace_id, p_platform, p_rate_group, _error, p_run_id, clock_timestamp());
        RETURN 'open';
    END IF;

    UPDATE platform_limits g
    SET circuit = CASE WHEN _circuit = 'open' AND p_answered THEN 'half' ELSE _circuit END,
        failed_deliveries = '{}',
        probe_at = CASE WHEN _circuit = 'open' THEN g.probe_at END,
        outage_error = CASE WHEN p_answered THEN g.outage_error ELSE _error END
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = p_platform
      AND g.rate_group = p_rate_group
    RETURNING g.circuit INTO _circuit;
    RETURN _circuit;
END $$;
