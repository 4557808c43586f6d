-- read_turns(workspace_id, chat_ids, lease_tokens) -> what became of turns whose commit got no answer
--
-- committed    true: the commit happened. The reply, with its slot, is as commit_turns would have returned it; it is null
--              when the chat was given back. false: nothing was committed, and the chat is still the caller's. No row: the
--              chat is not the caller's any more
CREATE OR REPLACE FUNCTION read_turns(p_workspace_id uuid, p_chat_ids text[], p_lease_tokens uuid[])
RETURNS TABLE (chat_id text, committed boolean, reply_id uuid, attempt int, slot_at timestamptz, wait interval)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT c.chat_id, b.reply_id IS NOT NULL, b.reply_id, b.attempt, b.slot_at, b.slot_at - clock_timestamp()
    FROM unnest(p_chat_ids, p_lease_tokens) AS g (chat_id, lease_token)
    JOIN bot_chats c
      ON c.workspace_id = p_workspace_id
     AND c.chat_id = g.chat_id
     AND c.lease_token = g.lease_token
    LEFT JOIN LATERAL (
        SELECT b.reply_id, b.attempt, b.slot_at
        FROM bot_outbox b
        WHERE b.workspace_id = p_workspace_id
          AND b.chat_id = c.chat_id
          AND b.sent_at IS NULL
          AND b.failed_at IS NULL
        ORDER BY b.place
        LIMIT 1
    ) AS b ON true
$$;
