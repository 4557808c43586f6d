-- end_trial(workspace_id, platform, rate_group, error)
--
-- The trial of a half circuit ended without an answer of the platform.
--
-- error     what the platform did instead: the circuit is open again, and the next probe is when it was to be. Null: the
--           delivery ended before it asked the platform anything, so another trial follows
-- Changes   half -> open
-- Locks     platform_limits: held by the caller
CREATE OR REPLACE FUNCTION end_trial(p_workspace_id uuid, p_platform text, p_rate_group text, p_error jsonb)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    UPDATE platform_limits g
    SET circuit = CASE WHEN p_error IS NULL THEN 'half' ELSE 'open' END::circuit_state,
        trial = NULL,
        outage_error = coalesce(p_error, g.outage_error)
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = p_platform
      AND g.rate_group = p_rate_group
      AND g.circuit = 'half'
$$;
