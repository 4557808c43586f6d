-- bot_counts(workspace_id) -> what the bots of active workspaces have to do, and what they wait for
--
-- unanswered    updates of customers without an answer, and since when the oldest waits
-- unsent        replies that have not ended
-- waiting       chats in which something is due now
-- handed_over   chats that an operator has
-- stopped       chats whose customer stopped the bot
-- workspace_id  null: those of all workspaces
CREATE OR REPLACE FUNCTION bot_counts(p_workspace_id uuid DEFAULT NULL)
RETURNS TABLE (
    workspace_id uuid,
    unanswered bigint,
    oldest_at timestamptz,
    unsent bigint,
    waiting bigint,
    handed_over bigint,
    stopped bigint
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id, i.unanswered, i.oldest_at, b.unsent, c.waiting, o.handed_over, x.stopped
    FROM workspaces w
    JOIN bot_settings s ON s.workspace_id = w.workspace_id
    CROSS JOIN LATERAL (
        SELECT count(*) AS unanswered, min(i.ts) AS oldest_at
        FROM bot_inbox i
        WHERE i.workspace_id = w.workspace_id
          AND i.processed_at IS NULL
    ) AS i
    CROSS JOIN LATERAL (
        SELECT count(*) AS unsent
        FROM bot_outbox b
        WHERE b.workspace_id = w.workspace_id
          AND b.sent_at IS NULL
          AND b.failed_at IS NULL
    ) AS b
    CROSS JOIN LATERAL (
        SELECT count(*) AS waiting
        FROM bot_chats c
        WHERE c.workspace_id = w.workspace_id
          AND c.due_at <= clock_timestamp()
          AND c.lease_token IS NULL
    ) AS c
    CROSS JOIN LATERAL (
        SELECT count(*) AS handed_over
        FROM bot_state o
        WHERE o.workspace_id = w.workspace_id
          AND o.state = 'operator'
          AND o.expires_at >= clock_timestamp()
    ) AS o
    CROSS JOIN LATERAL (
        SELECT count(*) AS stopped
        FROM bot_chats x
        WHERE x.workspace_id = w.workspace_id
          AND x.stopped_at IS NOT NULL
    ) AS x
    WHERE w.status = 'active'
      AND (p_workspace_id IS NULL OR w.workspace_id = p_workspace_id)
$$;
