-- note_bot_turn(workspace_id, now)
--
-- Remembers that the bot of this workspace was served, for the order of due_bot_workspaces. Who finds the row locked
-- leaves it: another worker notes the same.
--
-- Locks     bot_due SKIP LOCKED
CREATE OR REPLACE FUNCTION note_bot_turn(p_workspace_id uuid, p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE bot_due d
    SET last_taken_at = p_now
    WHERE d.workspace_id = (
        SELECT t.workspace_id
        FROM bot_due t
        WHERE t.workspace_id = p_workspace_id
        FOR NO KEY UPDATE SKIP LOCKED
    );
    IF NOT FOUND AND NOT EXISTS (SELECT 1 FROM bot_due d WHERE d.workspace_id = p_workspace_id) THEN
        INSERT INTO bot_due (workspace_id, last_taken_at)
        VALUES (p_workspace_id, p_now)
        ON CONFLICT DO NOTHING;
    END IF;
END $$;
