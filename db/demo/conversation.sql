-- What the bot did with each update of a chat, and whether its answer is sent. $1 workspace, $2 chat
SELECT l.meta ->> 'outcome' AS outcome, l.matched_rule_id AS rule, l.state_before, l.state_after,
       b.sent_at IS NOT NULL AS sent, extract(epoch FROM b.sent_at - i.ts)::float8 AS seconds
FROM bot_inbox i
JOIN bot_outbox b
  ON b.workspace_id = i.workspace_id
 AND b.chat_id = i.chat_id
 AND b.inbound_provider_message_id = i.provider_message_id
JOIN bot_logs l
  ON l.workspace_id = i.workspace_id
 AND l.chat_id = i.chat_id
 AND l.meta ->> 'idempotency_key' = reply_key(i.workspace_id, i.chat_id, i.provider_message_id)
WHERE i.workspace_id = $1
  AND i.chat_id = $2
ORDER BY i.provider_ts, i.provider_seq NULLS FIRST, i.ts
