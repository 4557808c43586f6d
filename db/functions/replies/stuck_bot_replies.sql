-- stuck_bot_replies(older) -> replies of active workspaces that were decided longer ago and have not ended
--
-- since        when the reply was decided; held: a worker has its chat now
CREATE OR REPLACE FUNCTION stuck_bot_replies(p_older interval)
RETURNS TABLE (
    workspace_id uuid,
    chat_id text,
    inbound_provider_message_id text,
    since timestamptz,
    attempt int,
    code text,
    held boolean
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT b.workspace_id, b.chat_id, b.inbound_provider_message_id, b.created_at, b.attempt, b.last_error ->> 'code',
           coalesce(c.lease_until > clock_timestamp(), false)
    FROM bot_outbox b
    JOIN workspaces w
      ON w.workspace_id = b.workspace_id
     AND w.status = 'active'
    LEFT JOIN bot_chats c
      ON c.workspace_id = b.workspace_id
     AND c.chat_id = b.chat_id
    WHERE b.sent_at IS NULL
      AND b.failed_at IS NULL
      AND b.created_at < (SELECT clock_timestamp() - p_older)
    ORDER BY b.created_at
$$;
