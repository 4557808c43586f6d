-- open_circuit(workspace_id, platform, rate_group, error, run_id, now)
--
-- The platform does not answer the rate group: from now on it is probed instead of sent to.
--
-- error        of the failure that decided it: {"code", …}
-- Changes      closed -> open
-- Appends      group_opened
-- Locks        platform_limits: held by the caller
CREATE OR REPLACE FUNCTION open_circuit(
    p_workspace_id uuid,
    p_platform text,
    p_rate_group text,
    p_error jsonb,
    p_run_id uuid,
    p_now timestamptz
)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH opened AS (
        UPDATE platform_limits g
        SET circuit = 'open',
            failed_deliveries = '{}',
            opened_at = p_now,
            probe_at = p_now + probe_wait(1),
            probes = 0,
            outage_error = p_error
        WHERE g.workspace_id = p_workspace_id
          AND g.platform = p_platform
          AND g.rate_group = p_rate_group
          AND g.circuit = 'closed'
        RETURNING g.platform, g.rate_group, g.probe_at
    )
    INSERT INTO events (workspace_id, ts, action, result, error, meta)
    SELECT p_workspace_id, p_now, 'group_opened', 'error', p_error,
           event_meta(NULL, p_run_id, jsonb_build_object(
               'platform', o.platform, 'rate_group', o.rate_group, 'probe_at', o.probe_at))
    FROM opened o
$$;
