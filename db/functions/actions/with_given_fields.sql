-- with_given_fields(action, fields) -> the action with the text and the payload that the fields have
--
-- A field that is absent stays as it is; null clears it. A payload of null is none.
CREATE OR REPLACE FUNCTION with_given_fields(p_action bot_actions, p_fields jsonb)
RETURNS bot_actions
LANGUAGE plpgsql
IMMUTABLE
AS $$
BEGIN
    IF p_fields ? 'display_text' THEN
        p_action.display_text := p_fields ->> 'display_text';
    END IF;
    IF p_fields ? 'payload' THEN
        p_action.payload := nullif(p_fields -> 'payload', 'null');
    END IF;
    RETURN p_action;
END $$;
