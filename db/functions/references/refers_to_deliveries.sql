-- refers_to_deliveries() trigger on channels and messages, after DELETE or a change of their key
--
-- A channel or message stays as long as its deliveries. The other side of this foreign key is in
-- deliveries_after_insert: an insert of a delivery locks its message and channel_due FOR KEY SHARE, so a delete waits
-- for it, and then checks.
--
-- Raises    foreign_key_violation while a delivery refers to the row
CREATE OR REPLACE FUNCTION refers_to_deliveries()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _referred boolean;
BEGIN
    IF TG_TABLE_NAME = 'messages' THEN
        _referred := EXISTS (
            SELECT 1
            FROM deliveries d
            WHERE d.workspace_id = OLD.workspace_id
              AND d.message_id = OLD.message_id
        );
    ELSE
        _referred := EXISTS (
            SELECT 1
            FROM deliveries d
            WHERE d.workspace_id = OLD.workspace_id
              AND d.channel_id = OLD.channel_id
        );
    END IF;
    IF _referred THEN
        RAISE EXCEPTION 'deliveries refer to this row of %', TG_TABLE_NAME
            USING ERRCODE = 'foreign_key_violation', HINT = 'delete the deliveries first, or disable the channel';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER refers_to_deliveries
    AFTER DELETE OR UPDATE OF workspace_id, channel_id ON channels
    FOR EACH ROW EXECUTE FUNCTION refers_to_deliveries();

CREATE OR REPLACE TRIGGER refers_to_deliveries
    AFTER DELETE OR UPDATE OF workspace_id, message_id ON messages
    FOR EACH ROW EXECUTE FUNCTION refers_to_deliveries();
