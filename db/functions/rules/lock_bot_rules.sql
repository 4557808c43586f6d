-- lock_bot_rules(workspace_id) -> rules_seq, and nobody else changes the rules until the transaction ends
--
-- Locks     bot_settings by key
-- Raises    AP014 for a workspace without a bot
CREATE OR REPLACE FUNCTION lock_bot_rules(p_workspace_id uuid)
RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _seq bigint;
BEGIN
    SELECT s.rules_seq
    INTO _seq
    FROM bot_settings s
    WHERE s.workspace_id = p_workspace_id
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the workspace has no bot' USING ERRCODE = 'AP014',
            HINT = 'insert a row into bot_settings first';
    END IF;
    RETURN _seq;
END $$;
