-- follow_auth_ref() trigger on channels, after UPDATE of auth_ref
--
-- A credential is named once: where rotate_auth has left a row in channel_auth, an UPDATE of channels.auth_ref writes
-- it too. So the UPDATE takes effect with the next claim. Claims read channel_auth first.
--
-- Changes   channel_auth
-- Locks     channel_auth by key, after the channel
CREATE OR REPLACE FUNCTION follow_auth_ref()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE channel_auth a
    SET auth_ref = NEW.auth_ref,
        rotated_at = clock_timestamp(),
        updated_at = clock_timestamp()
    WHERE a.workspace_id = NEW.workspace_id
      AND a.channel_id = NEW.channel_id
      AND a.auth_ref <> NEW.auth_ref;
    RETURN NULL;
END $$;

-- Also when the value is the same: an operator who writes it wants this credential.
CREATE OR REPLACE TRIGGER auth_ref_is_followed
    AFTER UPDATE OF auth_ref ON channels
    FOR EACH ROW EXECUTE FUNCTION follow_auth_ref();
