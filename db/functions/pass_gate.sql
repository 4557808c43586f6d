-- pass_gate(workspace_id, endpoint_id, rate) -> null when the request may pass, else how long to wait
--
-- One bucket per endpoint, shared by every replica, one second deep. null and 0 mean no limit and write nothing.
--
-- Locks     ingress_gates
CREATE OR REPLACE FUNCTION pass_gate(p_workspace_id uuid, p_endpoint_id uuid, p_rate numeric)
RETURNS interval
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _step interval := rate_step(p_rate);
    _full_until timestamptz;
    _now timestamptz;
BEGIN
    IF _step = interval '0' THEN
        RETURN NULL;
    END IF;

    INSERT INTO ingress_gates (workspace_id, endpoint_id)
    VALUES (p_workspace_id, p_endpoint_id)
    ON CONFLICT DO NOTHING;
    SELECT full_until
    INTO _full_until
    FROM ingress_gates
    WHERE workspace_id = p_workspace_id
      AND endpoint_id = p_endpoint_id
    FOR UPDATE;

    _now := clock_timestamp();
    _full_until := greatest(_full_until, _now);
    IF _full_until + _step > _now + greatest(interval '1 second', _step) THEN
        RETURN _full_until + _step - _now - greatest(interval '1 second', _step);
    END IF;

    UPDATE ingress_gates
    SET full_until = _full_until + _step
    WHERE workspace_id = p_workspace_id
      AND endpoint_id = p_endpoint_id;
    RETURN NULL;
END $$;
