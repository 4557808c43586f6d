-- refuse_ingress(workspace_id, endpoint_id, kind, action, counter, detail, trace_id)
--
-- A request of a known endpoint was refused. Leaves the event and a finished run with its counter; refusals of one
-- endpoint within a second are told as one, with meta.count.
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
    _count bigint;
    _run_id uuid := new_id();
BEGIN
    INSERT INTO ingress_gates AS g (workspace_id, endpoint_id, refused)
    VALUES (p_workspace_id, p_endpoint_id, 1)
    ON CONFLICT (workspace_id, endpoint_id) DO UPDATE SET refused = g.refused + 1;

    UPDATE ingress_gates g
    SET refused = 0,
        reported_at = clock_timestamp()
    FROM ingress_gates before
    WHERE g.workspace_id = p_workspace_id
      AND g.endpoint_id = p_endpoint_id
      AND before.workspace_id = g.workspace_id
      AND before.endpoint_id = g.endpoint_id
      AND g.reported_at < clock_timestamp() - interval '1 second'
    RETURNING before.refused
    INTO _count;
    IF NOT FOUND THEN
        RETURN;
    END IF;

    INSERT INTO ingest_runs (workspace_id, run_id, kind, endpoint_id, trace_id, finished_at, stats_json)
    VALUES (p_workspace_id, _run_id, p_kind, p_endpoint_id, p_trace_id, clock_timestamp(),
            jsonb_build_object(p_counter, _count));
    INSERT INTO events (workspace_id, action, result, error, meta)
    VALUES (p_workspace_id, p_action, 'error', p_detail,
            jsonb_build_object('endpoint_id', p_endpoint_id, 'run_id', _run_id, 'trace_id', p_trace_id,
                               'count', _count));
END $$;
