-- mark_sent(workspace_id, delivery_id, claim_token, provider_message_id, meta) -> 'committed' | 'stale'
--
-- The name that the source documents use, for operators and scripts. Services call commit_deliveries, for many at once.
--
-- provider_message_id   kept in the delivery and in the event
-- meta                  facts for the event
-- Changes, appends, locks as commit_deliveries for one outcome 'sent'. The time is that of the call.
CREATE OR REPLACE FUNCTION mark_sent(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_claim_token uuid,
    p_provider_message_id text,
    p_meta jsonb DEFAULT '{}'
)
RETURNS text
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT verdict
    FROM commit_deliveries(p_workspace_id, jsonb_build_array(jsonb_build_object(
        'delivery_id', p_delivery_id, 'claim_token', p_claim_token, 'result', 'sent',
        'provider_message_id', p_provider_message_id, 'meta', p_meta)))
$$;
