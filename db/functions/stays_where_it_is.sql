-- stays_where_it_is() trigger on messages, renderings, ingest_runs and ingress_receipts, when they are to belong to
-- another, and on messages when they are to be another
--
-- Raises    foreign_key_violation
CREATE OR REPLACE FUNCTION stays_where_it_is()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'a row of % belongs to what it was made for', TG_TABLE_NAME
        USING ERRCODE = 'foreign_key_violation';
END $$;

CREATE OR REPLACE TRIGGER stays_where_it_is
    AFTER UPDATE OF workspace_id, message_id ON messages
    FOR EACH ROW WHEN (new.workspace_id <> old.workspace_id OR new.message_id <> old.message_id)
    EXECUTE FUNCTION stays_where_it_is();

CREATE OR REPLACE TRIGGER stays_where_it_is
    AFTER UPDATE OF workspace_id, message_id ON renderings
    FOR EACH ROW WHEN (new.workspace_id <> old.workspace_id OR new.message_id <> old.message_id)
    EXECUTE FUNCTION stays_where_it_is();

CREATE OR REPLACE TRIGGER stays_where_it_is
    AFTER UPDATE OF workspace_id ON ingest_runs
    FOR EACH ROW WHEN (new.workspace_id <> old.workspace_id) EXECUTE FUNCTION stays_where_it_is();

CREATE OR REPLACE TRIGGER stays_where_it_is
    AFTER UPDATE OF workspace_id, endpoint_id ON ingress_receipts
    FOR EACH ROW WHEN (new.workspace_id <> old.workspace_id OR new.endpoint_id <> old.endpoint_id)
    EXECUTE FUNCTION stays_where_it_is();
