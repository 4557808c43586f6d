-- fail_push(workspace_id, endpoint_id, trace_id, code) -> the run of a push that failed on our side
--
-- Its own transaction was rolled back, so a finished run with the code is all that is stored. No receipt, so the sender
-- may repeat the request.
CREATE OR REPLACE FUNCTION fail_push(p_workspace_id uuid, p_endpoint_id uuid, p_trace_id text, p_code text)
RETURNS uuid
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    INSERT INTO ingest_runs (workspace_id, kind, endpoint_id, trace_id, finished_at, stats_json)
    VALUES (p_workspace_id, 'push', p_endpoint_id, p_trace_id, clock_timestamp(),
            jsonb_build_object('failed', 1, 'code', p_code))
    RETURNING run_id
$$;
