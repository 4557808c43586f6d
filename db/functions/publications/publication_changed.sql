-- publication_changed() trigger on publications, after INSERT and UPDATE
--
-- Refuses moves that is_legal_publication_move does not know, and appends the event of each change. So functions and
-- hand-written statements leave the same log.
--
-- Changes   what is paused or failed has a notice for its owner: see write_owner_notice
-- Appends   publication_drafted | approved | scheduled | due | published | failed | paused | cancelled, by the status
--           that it has now; meta has publication_id, version, from_status, who made the change, and what it is about
-- Raises    AP015 on an illegal move
CREATE OR REPLACE FUNCTION publication_changed()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _before text := CASE TG_OP WHEN 'UPDATE' THEN OLD.status END;
BEGIN
    IF _before IS NULL AND NEW.status <> 'draft' THEN
        RAISE EXCEPTION 'a publication begins as draft, not as %', NEW.status USING ERRCODE = 'AP015';
    ELSIF _before <> NEW.status AND NOT is_legal_publication_move(_before, NEW.status) THEN
        RAISE EXCEPTION 'a publication that is % cannot become %', _before, NEW.status USING ERRCODE = 'AP015';
    END IF;
    INSERT INTO events (workspace_id, delivery_id, channel_id, action, result, error, meta)
    VALUES (NEW.workspace_id, NULL, NEW.channel_id,
            CASE NEW.status
                WHEN 'draft' THEN 'publication_drafted'
                WHEN 'approved' THEN 'publication_approved'
                WHEN 'scheduled' THEN 'publication_scheduled'
                WHEN 'publishing' THEN 'publication_due'
                WHEN 'published' THEN 'publication_published'
                WHEN 'failed' THEN 'publication_failed'
                WHEN 'paused' THEN 'publication_paused'
                ELSE 'publication_cancelled'
            END::event_action,
            CASE WHEN NEW.status IN ('failed', 'paused') THEN 'error' ELSE 'ok' END::event_result,
            CASE
                WHEN NEW.status = 'failed' THEN bounded_error(NEW.last_error)
                WHEN NEW.status = 'paused' THEN bounded_error(
                    coalesce(NEW.last_error, '{}') || jsonb_build_object('code', NEW.pause_code))
            END,
            event_meta(NEW.trace_id, NULL, jsonb_build_object(
                'publication_id', NEW.publication_id, 'version', NEW.version, 'from_status', _before,
                'operator', NEW.changed_by, 'delivery_id', NEW.delivery_id,
                'scheduled_at', CASE WHEN NEW.status IN ('scheduled', 'publishing') THEN utc_text(NEW.scheduled_at) END,
                'plan_hash', CASE WHEN NEW.status = 'approved' THEN NEW.approved_plan_hash END,
                'provider_message_id', NEW.published_message_id,
                'reason', CASE WHEN NEW.status = 'cancelled' THEN redact(NEW.cancel_reason) END)));
    IF NEW.status IN ('paused', 'failed') THEN
        PERFORM write_owner_notice(NEW);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER publication_is_drafted
    AFTER INSERT ON publications
    FOR EACH ROW EXECUTE FUNCTION publication_changed();

CREATE OR REPLACE TRIGGER publication_is_changed
    AFTER UPDATE ON publications
    FOR EACH ROW
    WHEN ((OLD.status, OLD.version, OLD.scheduled_at) IS DISTINCT FROM (NEW.status, NEW.version, NEW.scheduled_at))
    EXECUTE FUNCTION publication_changed();
