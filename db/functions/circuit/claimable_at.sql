-- claimable_at(circuit, stalled_until) -> from when on a claim may take deliveries of a rate group
--
-- Claims, next_due_at and due_workspaces ask this about each group. Of an open circuit nothing is claimed, of a half one
-- only the trial, and that by claim_trial.
CREATE OR REPLACE FUNCTION claimable_at(p_circuit circuit_state, p_stalled_until timestamptz)
RETURNS timestamptz
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN p_circuit = 'closed' THEN coalesce(p_stalled_until, '-infinity') ELSE 'infinity' END::timestamptz
$$;
