-- reject_delivery_update() trigger on deliveries, after an UPDATE that is not allowed
--
-- The WHEN conditions of its triggers find such rows, so allowed rows cost no function call.
--
-- Raises    AP002 on an illegal transition, AP003 when attempt changes other than by one on the way into sending,
--           AP004 when a key changes, AP013 when a delivery without a plan is to be sent
CREATE OR REPLACE FUNCTION reject_delivery_update()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF (OLD.workspace_id, OLD.delivery_id, OLD.message_id, OLD.channel_id)
       IS DISTINCT FROM (NEW.workspace_id, NEW.delivery_id, NEW.message_id, NEW.channel_id) THEN
        RAISE EXCEPTION 'the key of a delivery cannot change' USING ERRCODE = 'AP004';
    ELSIF OLD.status <> NEW.status AND NOT is_legal_transition(OLD.status, NEW.status) THEN
        RAISE EXCEPTION 'a delivery that is % cannot become %', OLD.status, NEW.status USING ERRCODE = 'AP002';
    ELSIF OLD.status IN ('dead', 'failed_permanent') AND NEW.status = 'retry' AND NEW.rendering_id IS NULL THEN
        RAISE EXCEPTION 'delivery % has no plan: it was refused before one was made, so there is nothing to send',
            NEW.delivery_id
            USING ERRCODE = 'AP013', HINT = 'leave it out, and post the content again';
    END IF;
    RAISE EXCEPTION 'attempt of a delivery moved from % to %', OLD.attempt, NEW.attempt
        USING ERRCODE = 'AP003', HINT = 'attempt rises by one on the way into sending and never otherwise';
END $$;

CREATE OR REPLACE TRIGGER delivery_keeps_its_key
    AFTER UPDATE OF workspace_id, delivery_id, message_id, channel_id ON deliveries
    FOR EACH ROW
    WHEN ((OLD.workspace_id, OLD.delivery_id, OLD.message_id, OLD.channel_id)
          IS DISTINCT FROM (NEW.workspace_id, NEW.delivery_id, NEW.message_id, NEW.channel_id))
    EXECUTE FUNCTION reject_delivery_update();

CREATE OR REPLACE TRIGGER delivery_moves_legally
    AFTER UPDATE OF status, attempt ON deliveries
    FOR EACH ROW
    WHEN ((OLD.status <> NEW.status
           AND (NOT is_legal_transition(OLD.status, NEW.status)
                OR (NEW.rendering_id IS NULL AND NEW.status = 'retry' AND OLD.status IN ('dead', 'failed_permanent'))))
          OR (OLD.attempt <> NEW.attempt
              AND NOT (NEW.attempt = OLD.attempt + 1 AND NEW.status = 'sending' AND OLD.status <> 'sending')))
    EXECUTE FUNCTION reject_delivery_update();
