-- close_circuit(workspace_id, platform, rate_group, run_id, now)
--
-- The platform answered the trial. Deliveries on hold stay so: an operator decides about them.
--
-- Changes      half -> closed
-- Appends      group_closed
-- Locks        platform_limits: held by the caller
CREATE OR REPLACE FUNCTION close_circuit(
    p_workspace_id uuid,
    p_platform text,
    p_rate_group text,
    p_run_id uuid,
    p_now timestamptz
)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH was AS MATERIALIZED (
        SELECT g.opened_at, g.probes
        FROM platform_limits g
        WHERE g.workspace_id = p_workspace_id
          AND g.platform = p_platform
          AND g.rate_group = p_rate_group
    ), closed AS (
        UPDATE platform_limits g
        SET circuit = 'closed',
            opened_at = NULL,
            probe_at = NULL,
            probes = 0,
            trial = NULL,
            outage_error = NULL
        WHERE g.workspace_id = p_workspace_id
          AND g.platform = p_platform
          AND g.rate_group = p_rate_group
          AND g.circuit = 'half'
        RETURNING g.platform, g.rate_group
    )
    INSERT INTO events (workspace_id, ts, action, meta)
    SELECT p_workspace_id, p_now, 'group_closed',
           event_meta(NULL, p_run_id, jsonb_build_object(
               'platform', c.platform, 'rate_group', c.rate_group, 'opened_at', w.opened_at, 'probes', w.probes))
    FROM was w, closed c
$$;
