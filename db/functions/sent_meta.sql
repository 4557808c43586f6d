-- sent_meta(trace_id, delivery_id, provider_message_id, parts, meta) -> what a `sent` event says beyond its columns
--
-- STABLE, as jsonb_build_object is: else the planner would not write it into the query that asks.
CREATE OR REPLACE FUNCTION sent_meta(
    p_trace_id text,
    p_delivery_id uuid,
    p_provider_message_id text,
    p_parts jsonb,
    p_meta jsonb
)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_parts IS NULL AND p_meta IS NULL AND p_trace_id IS NOT NULL AND p_provider_message_id IS NOT NULL
            THEN jsonb_build_object('trace_id', p_trace_id, 'idempotency_key', p_delivery_id,
                                    'provider_message_id', p_provider_message_id)
        ELSE jsonb_strip_nulls(jsonb_build_object(
                 'trace_id', p_trace_id, 'idempotency_key', p_delivery_id,
                 'provider_message_id', p_provider_message_id, 'parts', p_parts) || coalesce(p_meta, '{}'))
    END
$$;
