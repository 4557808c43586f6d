-- retain_receipts(limit) -> how many expired receipts of requests are deleted
--
-- Locks     ingress_receipts by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_receipts(p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT r.workspace_id, r.receipt_id
        FROM ingress_receipts r
        WHERE r.expires_at < (SELECT clock_timestamp())
        ORDER BY r.expires_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM ingress_receipts t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.receipt_id = o.receipt_id
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
