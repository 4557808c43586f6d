-- event_meta(trace_id, run_id, facts) -> the meta of an event: both ids always, null where there is none, and its facts
--
-- Every event has the same two keys for readers of the log. Facts that are null are left out.
-- STABLE, as jsonb_build_object is: otherwise the planner would not inline it.
CREATE OR REPLACE FUNCTION event_meta(p_trace_id text, p_run_id uuid, p_facts jsonb)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT jsonb_strip_nulls(p_facts) || jsonb_build_object('trace_id', p_trace_id, 'run_id', p_run_id)
$$;
