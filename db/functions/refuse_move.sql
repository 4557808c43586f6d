-- refuse_move() trigger on deliveries, after an UPDATE that must not be, whoever makes it
--
-- The conditions of its triggers decide, row by row, without a call for a row that is in order.
--
-- Raises    AP002 on an illegal transition, AP003 when attempt moves any other way than up by one into sending,
--           AP004 when a key changes
CREATE OR REPLACE FUNCTION refuse_move()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF (OLD.workspace_id, OLD.delivery_id, OLD.message_id, OLD.channel_id)
       IS DISTINCT FROM (NEW.workspace_id, NEW.delivery_id, NEW.message_id, NEW.channel_id) THEN
        RAISE EXCEPTION 'the key of a delivery cannot change' USING ERRCODE = 'AP004';
    ELSIF OLD.status <> NEW.status AND NOT is_legal_transition(OLD.status, NEW.status) THEN
        RAISE EXCEPTION 'a delivery that is % cannot become %', OLD.status, NEW.status USING ERRCODE = 'AP002';
    END IF;
    RAISE EXCEPTION 'attempt of a delivery moved from % to %', OLD.attempt, NEW.attempt
        USING ERRCODE = 'AP003', HINT = 'attempt rises by one on the way into sending and never otherwise';
END $$;

CREATE OR REPLACE TRIGGER delivery_keeps_its_key
    AFTER UPDATE OF workspace_id, delivery_id, message_id, channel_id ON deliveries
    FOR EACH ROW
    WHEN ((OLD.workspace_id, OLD.delivery_id, OLD.message_id, OLD.channel_id)
          IS DISTINCT FROM (NEW.workspace_id, NEW.delivery_id, NEW.message_id, NEW.channel_id))
    EXECUTE FUNCTION refuse_move();

CREATE OR REPLACE TRIGGER delivery_moves_legally
    AFTER UPDATE OF status, attempt ON deliveries
    FOR EACH ROW
    WHEN ((OLD.status <> NEW.status AND NOT is_legal_transition(OLD.status, NEW.status))
          OR (OLD.attempt <> NEW.attempt
              AND NOT (NEW.attempt = OLD.attempt + 1 AND NEW.status = 'sending' AND OLD.status <> 'sending')))
    EXECUTE FUNCTION refuse_move();
