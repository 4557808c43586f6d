-- unpublished_commands(older, limit) -> commands of the outbox that nobody has published for so long
--
-- Any number of processes may publish the same command: its msg_id makes that harmless.
CREATE OR REPLACE FUNCTION unpublished_commands(p_older interval, p_limit int)
RETURNS TABLE (workspace_id uuid, command_id uuid, msg_id text, subject text, payload text, traceparent text)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT c.workspace_id, c.command_id, c.msg_id, c.subject, c.payload::text, c.traceparent
    FROM command_outbox c
    WHERE c.published_at IS NULL
      AND c.created_at <= clock_timestamp() - p_older
    ORDER BY c.created_at
    LIMIT p_limit
$$;
