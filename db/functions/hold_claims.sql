-- hold_claims(workspace_id, delivery_ids, claim_tokens) -> for each, in order, where its delivery lies; null when stale
--
-- A claim is current when its token is still the one of a delivery that is being sent. That delivery is
-- held from here on, so its place (ctid) cannot change, and the next statement finds it there: a join by key would be
-- planned by how full the table was at that time. The same statement would not do, it may be older than the lock.
-- Of two that name one claim the second is stale: the first will have used the token.
--
-- Locks     deliveries by key
CREATE OR REPLACE FUNCTION hold_claims(p_workspace_id uuid, p_delivery_ids uuid[], p_claim_tokens uuid[])
RETURNS tid[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    RETURN (
        SELECT array_agg(d.place ORDER BY o.nth)
        FROM (
            SELECT g.*, row_number() OVER (PARTITION BY g.delivery_id, g.claim_token ORDER BY g.nth) AS time
            FROM unnest(p_delivery_ids, p_claim_tokens) WITH ORDINALITY AS g (delivery_id, claim_token, nth)
            ORDER BY g.delivery_id, g.claim_token
        ) AS o
        LEFT JOIN LATERAL (
            SELECT d.ctid AS place
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = o.delivery_id
              AND d.claim_token = o.claim_token
              AND d.status = 'sending'
            FOR NO KEY UPDATE
        ) AS d ON o.time = 1
    );
END $$;
