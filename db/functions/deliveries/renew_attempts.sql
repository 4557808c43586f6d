-- renew_attempts() trigger on deliveries, after a hand-written statement has brought back a dead letter
--
-- Such a statement does not set max_attempts, and without a new budget the first failure would be the last: attempt
-- stays what it is, and five more are allowed. The functions set max_attempts themselves and count their event, which
-- tells them apart; a statement that sets another number keeps it.
CREATE OR REPLACE FUNCTION renew_attempts()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE deliveries d
    SET max_attempts = d.attempt + 5
    WHERE d.workspace_id = NEW.workspace_id
      AND d.delivery_id = NEW.delivery_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER renew_attempts
    AFTER UPDATE OF status ON deliveries
    FOR EACH ROW
    WHEN (OLD.status IN ('dead', 'failed_permanent')
          AND NEW.status = 'retry'
          AND NEW.event_count = OLD.event_count
          AND NEW.max_attempts = OLD.max_attempts)
    EXECUTE FUNCTION renew_attempts();
