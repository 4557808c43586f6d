-- has_endpoint() trigger on ingress_receipts, after INSERT, once per statement
--
-- Its foreign key, for all rows of a statement at once; see has_workspace.
--
-- Locks     workspace_endpoints FOR KEY SHARE, by key
-- Raises    foreign_key_violation without an endpoint
CREATE OR REPLACE FUNCTION has_endpoint()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    IF EXISTS (
        SELECT 1
        FROM (
            SELECT DISTINCT n.workspace_id, n.endpoint_id
            FROM new_rows n
            ORDER BY n.workspace_id, n.endpoint_id
        ) AS n
        WHERE NOT EXISTS (
            SELECT 1
            FROM workspace_endpoints e
            WHERE e.workspace_id = n.workspace_id
              AND e.endpoint_id = n.endpoint_id
            FOR KEY SHARE
        )
    ) THEN
        RAISE EXCEPTION 'a row of % has no endpoint', TG_TABLE_NAME USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER has_endpoint
    AFTER INSERT ON ingress_receipts
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION has_endpoint();
