-- channel_opening_is_logged() constraint trigger on channels, at commit
--
-- A channel that was enabled, or whose pause was cut short, has a channel_enabled event. When the transaction wrote
-- none, for example a hand-written UPDATE, this writes it: `why` and `verify` rely on the log.
--
-- Appends   channel_enabled (how: sql), unless the transaction has written it
CREATE OR REPLACE FUNCTION channel_opening_is_logged()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF (NEW.enabled AND NOT OLD.enabled OR OLD.paused_until > now()) AND NOT EXISTS (
        SELECT 1
        FROM events e
        WHERE e.workspace_id = NEW.workspace_id
          AND e.channel_id = NEW.channel_id
          AND e.delivery_id IS NULL
          AND e.ts >= now()
          AND e.action = 'channel_enabled'
          AND e.xid = pg_current_xact_id()
    ) THEN
        INSERT INTO events (workspace_id, channel_id, action, meta)
        VALUES (NEW.workspace_id, NEW.channel_id, 'channel_enabled', event_meta(NULL, NULL, jsonb_build_object(
            'how', 'sql', 'manual', true, 'enabled', NEW.enabled)));
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS channel_opening_is_logged ON channels;
CREATE CONSTRAINT TRIGGER channel_opening_is_logged
    AFTER UPDATE OF enabled, paused_until ON channels
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW
    WHEN ((NEW.enabled AND NOT OLD.enabled)
          OR coalesce(NEW.paused_until, '-infinity') < coalesce(OLD.paused_until, '-infinity'))
    EXECUTE FUNCTION channel_opening_is_logged();
