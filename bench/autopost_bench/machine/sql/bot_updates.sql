-- $1 updates for every chat of the active workspaces.
WITH update AS (
    INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, provider_ts, update)
    SELECT c.workspace_id, 'max', c.chat_id, gen_random_uuid()::text, 1700000000000 + n,
           jsonb_build_object('message', jsonb_build_object('body', jsonb_build_object(
               'text', 'please tell me about word' || (1 + n % 5) || ' of the shop')))
    FROM bot_chats c
    JOIN workspaces w
      ON w.workspace_id = c.workspace_id
     AND w.status = 'active'
    CROSS JOIN generate_series(1, $1::int) AS n
    WHERE c.stopped_at IS NULL
)
UPDATE bot_chats c
SET due_at = now()
FROM workspaces w
WHERE w.workspace_id = c.workspace_id
  AND w.status = 'active'
  AND c.stopped_at IS NULL
