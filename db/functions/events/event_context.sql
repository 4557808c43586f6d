-- event_context(trace_id, run_id, max_attempts) -> the part of an event's meta that says where the post came from
--
-- Plain SQL without settings of its own, so that the planner inlines it.
CREATE OR REPLACE FUNCTION event_context(p_trace_id text, p_run_id uuid, p_max_attempts int)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_max_attempts IS NULL THEN jsonb_build_object('trace_id', p_trace_id, 'run_id', p_run_id)
        ELSE jsonb_build_object('trace_id', p_trace_id, 'run_id', p_run_id, 'max_attempts', p_max_attempts)
    END
$$;
