-- channel_profile() trigger on channels
--
-- Keeps channels.profile_hash: channels with the same hash render a post alike, so it is compiled once for all of them,
-- and a profile cached by its hash is never stale. The thread that a post goes to is part of the address, not of the
-- rendering, and stays out of the hash.
CREATE OR REPLACE FUNCTION channel_profile()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.profile_hash := encode(sha256(convert_to(jsonb_build_object(
        'platform', NEW.platform,
        'send_mode', NEW.send_mode,
        'settings', NEW.settings - 'message_thread_id',
        'template', NEW.template_ref,
        'version', (SELECT jsonb_build_array(t.version, t.body, t.defaults, t.parse_mode)
                    FROM templates t
                    WHERE t.workspace_id = NEW.workspace_id
                      AND t.template_id = NEW.template_ref
                    ORDER BY t.version DESC
                    LIMIT 1)
    )::text, 'UTF8')), 'hex');
    NEW.updated_at := now();
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER channel_profile
    BEFORE INSERT OR UPDATE OF platform, send_mode, settings, template_ref ON channels
    FOR EACH ROW EXECUTE FUNCTION channel_profile();
