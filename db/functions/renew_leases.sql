-- renew_leases(workspace_id, delivery_ids, claim_tokens, lease) -> the deliveries whose lease was ours to renew
CREATE OR REPLACE FUNCTION renew_leases(
    p_workspace_id uuid,
    p_delivery_ids uuid[],
    p_claim_tokens uuid[],
    p_lease interval DEFAULT '300 seconds'
)
RETURNS SETOF uuid
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    UPDATE deliveries d
    SET sending_lease_until = clock_timestamp() + p_lease,
        updated_at = clock_timestamp()
    FROM unnest(p_delivery_ids, p_claim_tokens) AS w (delivery_id, claim_token)
    WHERE d.workspace_id = p_workspace_id
      AND d.delivery_id = w.delivery_id
      AND d.claim_token = w.claim_token
      AND d.status = 'sending'
    RETURNING d.delivery_id
$$;
