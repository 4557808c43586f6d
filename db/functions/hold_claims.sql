-- hold_claims(workspace_id, outcomes) -> for each outcome, in order, where its delivery lies; null when it is stale
--
-- An outcome is of a current claim when its token is still the one of a delivery that is being sent. That delivery is
-- held from here on, so its place (ctid) cannot change, and the next statement finds it there: a join by key would be
-- planned by how full the table was at that time. The same statement would not do, it may be older than the lock.
--
-- Locks     deliveries by key
CREATE OR REPLACE FUNCTION hold_claims(p_workspace_id uuid, p_outcomes jsonb)
RETURNS tid[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    RETURN (
        SELECT array_agg(d.place ORDER BY o.nth)
        FROM (
            SELECT *
            FROM ROWS FROM (jsonb_to_recordset(p_outcomes) AS (delivery_id uuid, claim_token uuid))
                 WITH ORDINALITY AS g (delivery_id, claim_token, nth)
            ORDER BY g.delivery_id
        ) AS o
        LEFT JOIN LATERAL (
            SELECT d.ctid AS place
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = o.delivery_id
              AND d.claim_token = o.claim_token
              AND d.status = 'sending'
            FOR NO KEY UPDATE
        ) AS d ON true
    );
END $$;
