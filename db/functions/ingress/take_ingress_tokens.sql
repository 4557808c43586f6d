-- take_ingress_tokens(workspace_id, endpoint_id, rate, count)
-- -> how many of the requests may pass, and how long the next one has to wait
--
-- One token bucket per endpoint, shared by all replicas. It holds one second of the rate. A rate of null or 0 is no
-- limit; then nothing is written.
--
-- Locks     ingress_gates
CREATE OR REPLACE FUNCTION take_ingress_tokens(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_rate numeric,
    p_count int,
    OUT passed int,
    OUT wait interval
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _step interval := rate_step(p_rate);
    _depth interval := greatest(interval '1 second', _step);
    _full_until timestamptz;
    _now timestamptz;
BEGIN
    IF _step = interval '0' THEN
        passed := p_count;
        RETURN;
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
    passed := greatest(0, least(
        p_count, floor(extract(epoch FROM _now + _depth - _full_until) / extract(epoch FROM _step))));
    IF passed > 0 THEN
        UPDATE ingress_gates
        SET full_until = _full_until + passed * _step
        WHERE workspace_id = p_workspace_id
          AND endpoint_id = p_endpoint_id;
    END IF;
    wait := _full_until + (passed + 1) * _step - _now - _depth;
END $$;
