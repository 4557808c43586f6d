-- note_given_up() triggers on deliveries
--
-- Keeps given_up: a row while a delivery is dead or failed_permanent, whoever made it so. What comes back loses its
-- row, and with it the mark of skip(): should it die again, the alert sees it again.
--
-- The conditions stand on the triggers, not in here, so the life of a delivery that fares well never calls this.
CREATE OR REPLACE FUNCTION note_given_up()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM given_up g
        USING old_rows o
        WHERE g.workspace_id = o.workspace_id
          AND g.delivery_id = o.delivery_id;
    ELSIF NEW.status IN ('dead', 'failed_permanent') THEN
        INSERT INTO given_up (workspace_id, delivery_id, channel_id, status, given_up_at)
        VALUES (NEW.workspace_id, NEW.delivery_id, NEW.channel_id, NEW.status, clock_timestamp())
        ON CONFLICT DO NOTHING; -- an illegal move between the two: delivery_moved will refuse it by its name
    ELSE
        DELETE FROM given_up g
        WHERE g.workspace_id = NEW.workspace_id
          AND g.delivery_id = NEW.delivery_id;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER given_up_at_birth
    AFTER INSERT ON deliveries
    FOR EACH ROW
    WHEN (NEW.status = 'failed_permanent')
    EXECUTE FUNCTION note_given_up();

CREATE OR REPLACE TRIGGER given_up_or_brought_back
    AFTER UPDATE OF status ON deliveries
    FOR EACH ROW
    WHEN (OLD.status <> NEW.status
          AND (NEW.status IN ('dead', 'failed_permanent') OR OLD.status IN ('dead', 'failed_permanent')))
    EXECUTE FUNCTION note_given_up();

CREATE OR REPLACE TRIGGER given_up_and_gone
    AFTER DELETE ON deliveries
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION note_given_up();
