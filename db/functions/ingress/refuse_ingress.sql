-- refuse_ingress(workspace_id, endpoint_id, kind, action, counter, detail, trace_id, count)
--
-- Requests of a known endpoint were refused, all for one reason. Writes the event and a finished run with its counter;
-- refusals of one endpoint within a second share one event per action, with meta.count, written by the first refusal or
-- the first flush_refusals after that second.
--
-- detail    {"code", "payload_ref"}: the event's error, except payload_ref, which is the event's own; of several in one
--           event, the first that came with a payload counts
-- Locks     ingress_gates
CREATE OR REPLACE FUNCTION refuse_ingress(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_kind text,
    p_action event_action,
    p_counter text,
    p_detail jsonb,
    p_trace_id text,
    p_count bigint DEFAULT 1
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    INSERT INTO ingress_gates AS g (workspace_id, endpoint_id, refused)
    VALUES (p_workspace_id, p_endpoint_id, jsonb_build_object(p_action, jsonb_build_object(
                'kind', p_kind, 'count', p_count, 'counter', p_counter, 'detail', p_detail - 'payload_ref',
                'payload_ref', p_detail -> 'payload_ref', 'trace_id', p_trace_id)))
    ON CONFLICT (workspace_id, endpoint_id) DO UPDATE
    SET refused = g.refused || jsonb_build_object(p_action, (excluded.refused -> p_action::text) || jsonb_build_object(
                'count', coalesce((g.refused #>> ARRAY[p_action::text, 'count'])::bigint, 0) + p_count,
                'payload_ref', coalesce(g.refused #>> ARRAY[p_action::text, 'payload_ref'], p_detail ->> 'payload_ref')));

    PERFORM flush_refusals(p_workspace_id, p_endpoint_id);
END $$;
