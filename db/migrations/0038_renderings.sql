-- The foreign key of renderings is checked once per statement, too: see has_message and message_gone.
ALTER TABLE renderings
    -- squawk-ignore ban-drop-constraint
    DROP CONSTRAINT renderings_workspace_id_message_id_fkey;
