-- lock_claims(workspace_ids, delivery_ids, claim_tokens)
-- -> for each, in order, the place of its delivery; null when stale
--
-- A claim is current when its token is the one of a delivery with status sending. That delivery is locked until the
-- transaction ends, so its place (ctid) cannot change. The next statement finds it by place: a join by key would be
-- planned for the size that the table had when the plan was made. Locking and updating in one statement does not work,
-- because the statement's snapshot may be older than the lock. Of two outcomes for one claim the second is stale.
--
-- Locks     deliveries by key
CREATE OR REPLACE FUNCTION lock_claims(p_workspace_ids uuid[], p_delivery_ids uuid[], p_claim_tokens uuid[])
RETURNS tid[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    RETURN (
        SELECT array_agg(d.place ORDER BY o.nth)
        FROM (
            SELECT g.*, row_number() OVER (PARTITION BY g.workspace_id, g.delivery_id, g.claim_token
                                           ORDER BY g.nth) AS time
            FROM unnest(p_workspace_ids, p_delivery_ids, p_claim_tokens)
                WITH ORDINALITY AS g (workspace_id, delivery_id, claim_token, nth)
            ORDER BY g.workspace_id, g.delivery_id, g.claim_token
        ) AS o
        LEFT JOIN LATERAL (
            SELECT d.ctid AS place
            FROM deliveries d
            WHERE d.workspace_id = o.workspace_id
              AND d.delivery_id = o.delivery_id
              AND d.claim_token = o.claim_token
              AND d.status = 'sending'
            FOR NO KEY UPDATE
        ) AS d ON o.time = 1
    );
END $$;
