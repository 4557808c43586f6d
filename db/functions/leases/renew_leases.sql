-- renew_leases(workspace_id, delivery_ids, claim_tokens, lease) -> the deliveries whose lease was renewed
--
-- Locks     deliveries by key, as commit_deliveries does
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
    WITH held AS MATERIALIZED (
        SELECT d.delivery_id
        FROM (
            SELECT *
            FROM unnest(p_delivery_ids, p_claim_tokens) AS g (delivery_id, claim_token)
            ORDER BY g.delivery_id
        ) AS w
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT d.delivery_id
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = w.delivery_id
              AND d.claim_token = w.claim_token
              AND d.status = 'sending'
            FOR UPDATE
        ) AS d
    )
    UPDATE deliveries d
    SET sending_lease_until = statement_timestamp() + p_lease,
        updated_at = clock_timestamp()
    FROM held h
    WHERE d.workspace_id = p_workspace_id
      AND d.delivery_id = h.delivery_id
    RETURNING d.delivery_id
$$;
