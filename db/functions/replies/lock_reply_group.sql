-- lock_reply_group(workspace_id, outcomes) -> the place (ctid) of the rate group, locked; null when no outcome concerns it
--
-- Before any chat is locked. Nearly every outcome concerns no group: it was sent, and the circuit is not in doubt.
--
-- Locks     platform_limits by key
CREATE OR REPLACE FUNCTION lock_reply_group(p_workspace_id uuid, p_outcomes jsonb)
RETURNS tid
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _place tid;
BEGIN
    IF jsonb_path_exists(p_outcomes, '$[*] ? (@.result == "failed")')
       OR EXISTS (SELECT 1 FROM circuits_in_doubt(ARRAY[p_workspace_id])) THEN
        SELECT g.ctid
        INTO _place
        FROM bot_settings s
        JOIN platform_limits g
          ON g.workspace_id = s.workspace_id
         AND g.platform = s.provider
         AND g.rate_group = s.rate_group
        WHERE s.workspace_id = p_workspace_id
        FOR UPDATE OF g;
    END IF;
    RETURN _place;
END $$;
