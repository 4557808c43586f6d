-- settle_publication() trigger on deliveries, after the status or hold of a publication's delivery changed
--
-- A publication follows its delivery in the same transaction, whoever moves it: dispatcher, monitor, operator.
--
-- sent                      -> published, with the id of the message
-- held                      -> paused, unconfirmed: nobody knows whether it is in the channel
-- failed, file expired      -> paused, file_id_expired: its owner gives another file
-- dropped as too late       -> paused, missed
-- failed_permanent, dead    -> failed
-- cancelled                 -> cancelled
-- brought back to retry     -> publishing
-- What fails also goes to the dead letters: see write_dead_letter.
--
-- Locks     publications, command_outbox; the delivery is held by the caller
-- Raises    AP015 when a delivery comes back that is not that of its publication any more
CREATE OR REPLACE FUNCTION settle_publication()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _type text := publication_error_type(NEW.last_error ->> 'code');
    _status text := CASE
        WHEN NEW.status = 'sent' THEN 'published'
        WHEN NEW.status = 'retry' AND NEW.hold_reason IS NOT NULL THEN 'paused'
        WHEN NEW.status IN ('failed_permanent', 'dead') AND _type IN ('file_id_expired', 'missed') THEN 'paused'
        WHEN NEW.status IN ('failed_permanent', 'dead') THEN 'failed'
        WHEN NEW.status = 'cancelled' THEN 'cancelled'
        WHEN NEW.status = 'retry' THEN 'publishing'
    END;
    _ended publications;
BEGIN
    UPDATE publications p
    SET status = _status,
        published_message_id = CASE WHEN _status = 'published' THEN NEW.provider_message_id END,
        published_at = CASE WHEN _status = 'published' THEN NEW.sent_at END,
        settled_at = CASE WHEN _status <> 'publishing' THEN NEW.updated_at END,
        pause_code = CASE WHEN _status <> 'paused' THEN NULL
                          WHEN NEW.hold_reason IS NOT NULL THEN 'unconfirmed'
                          ELSE _type END,
        last_error = CASE WHEN _status IN ('paused', 'failed')
                          THEN bounded_error(NEW.last_error || jsonb_build_object('error_type', _type)) END,
        cancel_reason = CASE WHEN _status = 'cancelled' THEN NEW.cancel_request ->> 'reason' END,
        version = p.version + CASE WHEN _status = 'cancelled' THEN 1 ELSE 0 END,
        changed_by = CASE WHEN _status = 'cancelled' THEN NEW.cancel_request ->> 'operator' END,
        updated_at = NEW.updated_at
    WHERE p.workspace_id = NEW.workspace_id
      AND p.delivery_id = NEW.delivery_id
      AND p.status <> _status
    RETURNING p.* INTO _ended;
    IF _ended.publication_id IS NULL AND OLD.status IN ('dead', 'failed_permanent') AND NEW.status = 'retry'
       AND NOT EXISTS (
           SELECT 1
           FROM publications p
           WHERE p.workspace_id = NEW.workspace_id
             AND p.delivery_id = NEW.delivery_id
       ) THEN
        RAISE EXCEPTION 'the publication of delivery % was changed: it has another delivery now, or none',
            NEW.delivery_id
            USING ERRCODE = 'AP015', HINT = 'autopost publication show tells which; give it a time again';
    END IF;
    IF _ended.status = 'failed' OR (_ended.status = 'paused' AND _type = 'file_id_expired') THEN
        PERFORM write_dead_letter(_ended, NEW);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER publication_follows_its_delivery
    AFTER UPDATE OF status, hold_reason ON deliveries
    FOR EACH ROW
    WHEN (NEW.policy = 'publication'
          AND NEW.status NOT IN ('queued', 'claimed', 'sending')
          AND (OLD.status, OLD.hold_reason) IS DISTINCT FROM (NEW.status, NEW.hold_reason))
    EXECUTE FUNCTION settle_publication();
