-- refuse_ingress(workspace_id, endpoint_id, kind, action, counter, detail, trace_id)
--
-- A request of a known endpoint was refused. Leaves the event and a finished run with its counter; refusals of one
-- endpoint within a second are told as one per action, with meta.count, by the first refusal after that second.
--
-- Locks     ingress_gates
CREATE OR REPLACE FUNCTION refuse_ingress(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_kind text,
    p_action event_action,
    p_counter text,
    p_detail jsonb,
    p_trace_id text
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _refused jsonb;
    _run_id uuid := new_id();
BEGIN
    INSERT INTO ingress_gates AS g (workspace_id, endpoint_id, refused)
    VALUES (p_workspace_id, p_endpoint_id, jsonb_build_object(p_action, jsonb_build_object(
                'count', 1, 'counter', p_counter, 'detail', p_detail, 'trace_id', p_trace_id)))
    ON CONFLICT (workspace_id, endpoint_id) DO UPDATE
    SET refused = g.refused || jsonb_build_object(p_action, (excluded.refused -> p_action::text) || jsonb_build_object(
                'count', coalesce((g.refused #>> ARRAY[p_action::text, 'count'])::bigint, 0) + 1));

    UPDATE ingress_gates g
    SET refused = '{}',
        reported_at = clock_timestamp()
    FROM ingress_gates before
    WHERE g.workspace_id = p_workspace_id
      AND g.endpoint_id = p_endpoint_id
      AND before.workspace_id = g.workspace_id
      AND before.endpoint_id = g.endpoint_id
      AND g.reported_at < clock_timestamp() - interval '1 second'
    RETURNING before.refused
    INTO _refused;
    IF NOT FOUND THEN
        RETURN;
    END IF;

    INSERT INTO ingest_runs (workspace_id, run_id, kind, endpoint_id, trace_id, finished_at, stats_json)
    SELECT p_workspace_id, _run_id, p_kind, p_endpoint_id, p_trace_id, clock_timestamp(),
           jsonb_object_agg(r.told ->> 'counter', r.told -> 'count')
    FROM jsonb_each(_refused) AS r (action, told);
    INSERT INTO events (workspace_id, action, result, error, meta)
    SELECT p_workspace_id, r.action::event_action, 'error', r.told -> 'detail',
           jsonb_build_object('endpoint_id', p_endpoint_id, 'run_id', _run_id, 'trace_id', r.told -> 'trace_id',
                              'count', r.told -> 'count')
    FROM jsonb_each(_refused) AS r (action, told);
END $$;
