-- check_key_unchanged() trigger on messages, renderings, ingest_runs and ingress_receipts
--
-- Refuses an UPDATE that changes the key of a message, or the row that one of the others belongs to.
--
-- Raises    foreign_key_violation
CREATE OR REPLACE FUNCTION check_key_unchanged()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'the keys of a row of % cannot change', TG_TABLE_NAME
        USING ERRCODE = 'foreign_key_violation';
END $$;

CREATE OR REPLACE TRIGGER check_key_unchanged
    AFTER UPDATE OF workspace_id, message_id ON messages
    FOR EACH ROW WHEN (new.workspace_id <> old.workspace_id OR new.message_id <> old.message_id)
    EXECUTE FUNCTION check_key_unchanged();

CREATE OR REPLACE TRIGGER check_key_unchanged
    AFTER UPDATE OF workspace_id, message_id ON renderings
    FOR EACH ROW WHEN (new.workspace_id <> old.workspace_id OR new.message_id <> old.message_id)
    EXECUTE FUNCTION check_key_unchanged();

CREATE OR REPLACE TRIGGER check_key_unchanged
    AFTER UPDATE OF workspace_id ON ingest_runs
    FOR EACH ROW WHEN (new.workspace_id <> old.workspace_id) EXECUTE FUNCTION check_key_unchanged();

CREATE OR REPLACE TRIGGER check_key_unchanged
    AFTER UPDATE OF workspace_id, endpoint_id ON ingress_receipts
    FOR EACH ROW WHEN (new.workspace_id <> old.workspace_id OR new.endpoint_id <> old.endpoint_id)
    EXECUTE FUNCTION check_key_unchanged();
