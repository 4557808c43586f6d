-- fail_permanent(workspace_id, delivery_id, claim_token, error) -> 'committed' | 'stale'
-- One PERMANENT outcome of commit_deliveries; penalties follow error.scope.
CREATE OR REPLACE FUNCTION fail_permanent(
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
        jsonb_build_object('scope', 'delivery') || p_error || jsonb_build_object(
            'delivery_id', p_delivery_id, 'claim_token', p_claim_token, 'result', 'failed',
            'category', 'PERMANENT')))
$$;
