-- stage_post(workspace_id, endpoint_id, receipt_id, post) -> the id of the staged post
--
-- Stores an accepted post whose media is still to be fetched. Called by the transaction that writes its receipt and its
-- run, so that all of them exist or none.
--
-- post         {"request", "source", "run_id", "trace_id", "traceparent"}
-- receipt_id   the receipt that a final failure deletes; null when there is none
CREATE OR REPLACE FUNCTION stage_post(p_workspace_id uuid, p_endpoint_id uuid, p_receipt_id uuid, p_post jsonb)
RETURNS uuid
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    INSERT INTO staged_posts (workspace_id, endpoint_id, receipt_id, run_id, trace_id, traceparent, request, source)
    VALUES (p_workspace_id, p_endpoint_id, p_receipt_id, (p_post ->> 'run_id')::uuid, p_post ->> 'trace_id',
            p_post ->> 'traceparent', p_post -> 'request', coalesce(p_post -> 'source', '{}'))
    RETURNING post_id
$$;
