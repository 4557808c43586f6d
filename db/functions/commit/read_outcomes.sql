-- read_outcomes(workspace_id, delivery_ids, claim_tokens) -> which of these claims is still open
--
-- A worker calls this when the response to its commit was lost: 'open' means the commit did not happen. Anything else
-- means that it did or that the claim has passed on; either way there is nothing left to commit.
CREATE OR REPLACE FUNCTION read_outcomes(p_workspace_id uuid, p_delivery_ids uuid[], p_claim_tokens uuid[])
RETURNS TABLE (delivery_id uuid, verdict text)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT w.delivery_id,
           CASE WHEN d.status = 'sending' AND d.claim_token = w.claim_token THEN 'open' ELSE d.status::text END
    FROM unnest(p_delivery_ids, p_claim_tokens) AS w (delivery_id, claim_token)
    LEFT JOIN LATERAL ( -- each by key, whatever the planner estimates
        SELECT d.status, d.claim_token
        FROM deliveries d
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = w.delivery_id
        OFFSET 0
    ) AS d ON true
$$;
