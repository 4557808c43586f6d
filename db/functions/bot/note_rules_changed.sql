-- note_rules_changed() triggers on bot_rules, after any change, once per statement
--
-- Raises rules_seq of the workspaces whose rules changed, in the same transaction. take_chats returns it, so a bot loads
-- the rules anew exactly when they differ from those it has: it neither polls nor answers by old ones.
--
-- Changes   bot_settings.rules_seq
-- Locks     bot_settings by key
CREATE OR REPLACE FUNCTION note_rules_changed()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _workspaces uuid[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        _workspaces := ARRAY(SELECT DISTINCT n.workspace_id FROM new_rows n);
    ELSIF TG_OP = 'DELETE' THEN
        _workspaces := ARRAY(SELECT DISTINCT o.workspace_id FROM old_rows o);
    ELSE
        _workspaces := ARRAY(SELECT n.workspace_id FROM new_rows n UNION SELECT o.workspace_id FROM old_rows o);
    END IF;
    PERFORM 1
    FROM bot_settings s
    WHERE s.workspace_id = ANY (_workspaces)
    ORDER BY s.workspace_id
    FOR NO KEY UPDATE;
    UPDATE bot_settings s
    SET rules_seq = s.rules_seq + 1
    WHERE s.workspace_id = ANY (_workspaces);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER rules_added
    AFTER INSERT ON bot_rules
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION note_rules_changed();

CREATE OR REPLACE TRIGGER rules_changed
    AFTER UPDATE ON bot_rules
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION note_rules_changed();

CREATE OR REPLACE TRIGGER rules_deleted
    AFTER DELETE ON bot_rules
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION note_rules_changed();
