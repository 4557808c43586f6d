-- requeue_is_explained() constraint trigger on deliveries, at commit
--
-- A dead letter comes back only together with a manual_requeue event of the same transaction.
-- Raises AP006 otherwise.
CREATE OR REPLACE FUNCTION requeue_is_explained()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1
        FROM events e
        WHERE e.workspace_id = NEW.workspace_id
          AND e.delivery_id = NEW.delivery_id
          AND e.action = 'manual_requeue'
          AND e.xid = pg_current_xact_id()
    ) THEN
        RAISE EXCEPTION 'delivery % went from % to retry without a manual_requeue event', NEW.delivery_id, OLD.status
            USING ERRCODE = 'AP006', HINT = 'insert the event in the same transaction';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS requeue_is_explained ON deliveries;
CREATE CONSTRAINT TRIGGER requeue_is_explained
    AFTER UPDATE OF status ON deliveries
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW
    WHEN (OLD.status IN ('dead', 'failed_permanent') AND NEW.status = 'retry')
    EXECUTE FUNCTION requeue_is_explained();
