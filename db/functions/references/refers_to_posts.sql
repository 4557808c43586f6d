-- refers_to_posts() trigger on workspaces and workspace_endpoints, after DELETE or a change of their key
--
-- A workspace or endpoint stays as long as its messages, runs and receipts. The other side of these foreign keys is in
-- has_workspace and has_endpoint: the second transaction waits for the first, and then checks.
--
-- Raises    foreign_key_violation while one of them refers to the row
CREATE OR REPLACE FUNCTION refers_to_posts()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _referred boolean;
BEGIN
    IF TG_TABLE_NAME = 'workspaces' THEN
        _referred := EXISTS (SELECT 1 FROM messages m WHERE m.workspace_id = OLD.workspace_id)
                  OR EXISTS (SELECT 1 FROM ingest_runs i WHERE i.workspace_id = OLD.workspace_id);
    ELSE
        _referred := EXISTS (
            SELECT 1
            FROM ingress_receipts r
            WHERE r.workspace_id = OLD.workspace_id
              AND r.endpoint_id = OLD.endpoint_id
        );
    END IF;
    IF _referred THEN
        RAISE EXCEPTION 'posts refer to this row of %', TG_TABLE_NAME
            USING ERRCODE = 'foreign_key_violation', HINT = 'disable it instead';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER refers_to_posts
    AFTER DELETE OR UPDATE OF workspace_id ON workspaces
    FOR EACH ROW EXECUTE FUNCTION refers_to_posts();

CREATE OR REPLACE TRIGGER refers_to_posts
    AFTER DELETE OR UPDATE OF workspace_id, endpoint_id ON workspace_endpoints
    FOR EACH ROW EXECUTE FUNCTION refers_to_posts();
