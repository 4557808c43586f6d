-- The ledger: every slot that was given, by channel; `beside` the chat it was taken from the group alone. See slot_log.
SELECT e.channel_id, (e.meta ->> 'slot_at')::timestamptz AS slot_at, false AS beside
FROM events e
WHERE e.workspace_id = $1
  AND e.action = 'send_attempt'
UNION ALL
SELECT l.channel_id, l.slot_at, l.beside
FROM slot_log l
WHERE l.workspace_id = $1
ORDER BY slot_at
