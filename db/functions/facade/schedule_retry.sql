-- schedule_retry(workspace_id, delivery_id, claim_token, error) -> 'committed' | 'stale'
--
-- The name that the source documents use, for operators and scripts. Services call commit_deliveries, for many at once.
--
-- error     {"code", "message", "scope", "retry_after_ms", "ambiguous", …} as in an outcome of commit_deliveries; scope
--           is 'delivery' unless given. retry_delay sets the time of the next attempt, so it is no parameter:
--           retry_after_ms asks for a wait.
-- Changes, appends, locks as commit_deliveries for one TRANSIENT outcome.
CREATE OR REPLACE FUNCTION schedule_retry(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_claim_token uuid,
    p_error jsonb
)
RETURNS text
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT verdict
    FROM commit_deliveries(p_workspace_id, jsonb_build_array(
        jsonb_build_object('scope', 'delivery') || coalesce(p_error, '{}') || jsonb_build_object(
            'delivery_id', p_delivery_id, 'claim_token', p_claim_token, 'result', 'failed',
            'category', 'TRANSIENT')))
$$;
