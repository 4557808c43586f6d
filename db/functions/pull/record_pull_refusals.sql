-- record_pull_refusals(workspace_id, endpoint_id, source_id, run_id, trace_id, source_refs, refused)
--
-- Appends one event for the items of a chunk that have a receipt already (source_refs: the first five are named), and
-- one for each refused item. Text from the source is redacted and shortened.
--
-- Appends   ingress_dedup_dropped, ingress_payload_rejected
CREATE OR REPLACE FUNCTION record_pull_refusals(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_source_id text,
    p_run_id uuid,
    p_trace_id jsonb,
    p_source_refs text[],
    p_refused jsonb
)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    INSERT INTO events (workspace_id, action, result, error, meta)
    SELECT p_workspace_id, t.action, 'error', t.error, jsonb_build_object(
               'endpoint_id', p_endpoint_id, 'source_id', p_source_id, 'run_id', p_run_id, 'count', t.count,
               'trace_id', p_trace_id)
    FROM (
        SELECT 'ingress_dedup_dropped'::event_action AS action, cardinality(p_source_refs) AS count,
               jsonb_build_object('code', 'dedup_dropped', 'source_refs', (
                   SELECT jsonb_agg(quoted(t.source_ref) ORDER BY t.place)
                   FROM unnest(p_source_refs[1:5]) WITH ORDINALITY AS t (source_ref, place)
               )) AS error
        WHERE p_source_refs <> '{}'
        UNION ALL
        SELECT 'ingress_payload_rejected', 1, f.item || jsonb_build_object(
                   'source_ref', quoted(f.item ->> 'source_ref'),
                   'message', quoted(f.item ->> 'message', 400))
        FROM jsonb_array_elements(p_refused) AS f (item)
    ) AS t
$$;
