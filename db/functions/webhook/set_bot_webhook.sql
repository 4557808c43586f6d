-- set_bot_webhook(workspace_id, url, operator, reason) -> {"verdict", "was"}
--
-- Says where updates of the bot have to come to, after the provider was told; null: nowhere in particular.
--
-- Verdicts     set, no_bot
-- Appends      config_changed, with the old and the new address
-- Locks        bot_settings by key
-- Raises       AP010 without operator or reason.
CREATE OR REPLACE FUNCTION set_bot_webhook(p_workspace_id uuid, p_url text, p_operator text, p_reason text)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _was text;
BEGIN
    SELECT s.webhook_url
    INTO _was
    FROM bot_settings s
    WHERE s.workspace_id = p_workspace_id
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('verdict', 'no_bot');
    END IF;

    UPDATE bot_settings s
    SET webhook_url = p_url
    WHERE s.workspace_id = p_workspace_id;
    INSERT INTO events (workspace_id, action, meta)
    VALUES (p_workspace_id, 'config_changed', event_meta(NULL, NULL, _signature || jsonb_build_object(
        'what', 'bot_settings.webhook_url', 'was', redact(_was), 'is', redact(p_url))));
    RETURN jsonb_build_object('verdict', 'set', 'was', _was);
END $$;
