-- sent_meta(trace_id, run_id, delivery_id, provider_message_id) -> the meta of a `sent` event without further facts
--
-- The same as event_meta, in one call: nearly every delivery ends so.
-- STABLE, as jsonb_build_object is: otherwise the planner would not inline it.
CREATE OR REPLACE FUNCTION sent_meta(p_trace_id text, p_run_id uuid, p_delivery_id uuid, p_provider_message_id text)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_provider_message_id IS NOT NULL
            THEN jsonb_object(ARRAY['trace_id', p_trace_id, 'run_id', p_run_id::text,
                                    'idempotency_key', p_delivery_id::text,
                                    'provider_message_id', p_provider_message_id])
        ELSE jsonb_object(ARRAY['trace_id', p_trace_id, 'run_id', p_run_id::text,
                                'idempotency_key', p_delivery_id::text])
    END
$$;
