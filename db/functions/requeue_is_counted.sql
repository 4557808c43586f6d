-- requeue_is_counted() trigger on events: a manual_requeue is counted by its delivery, whoever wrote it
--
-- The other events are counted by the function that writes them, with the row that it moves anyway. This one is also written
-- by hand, by statements that know nothing of a count; uncounted, verify_deliveries would call it a difference for ever.
-- An insert of anything else costs the condition alone.
--
-- Changes      deliveries.event_count
-- Locks        deliveries by key; whoever requeues holds it already
CREATE OR REPLACE FUNCTION requeue_is_counted()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE deliveries d
    SET event_count = d.event_count + 1
    WHERE d.workspace_id = NEW.workspace_id
      AND d.delivery_id = NEW.delivery_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER requeue_is_counted
    AFTER INSERT ON events
    FOR EACH ROW
    WHEN (NEW.action = 'manual_requeue' AND NEW.delivery_id IS NOT NULL)
    EXECUTE FUNCTION requeue_is_counted();
