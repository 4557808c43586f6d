-- commands_published(workspace_ids, command_ids) -> how many of these commands are now noted as published
CREATE OR REPLACE FUNCTION commands_published(p_workspace_ids uuid[], p_command_ids uuid[])
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _noted int;
BEGIN
    UPDATE command_outbox c
    SET published_at = clock_timestamp()
    FROM unnest(p_workspace_ids, p_command_ids) AS p (workspace_id, command_id)
    WHERE c.workspace_id = p.workspace_id
      AND c.command_id = p.command_id
      AND c.published_at IS NULL;
    GET DIAGNOSTICS _noted = ROW_COUNT;
    RETURN _noted;
END $$;
