-- The ledger: every slot that was given, by channel.
SELECT e.channel_id, (e.meta ->> 'slot_at')::timestamptz AS slot_at
FROM events e
WHERE e.workspace_id = $1
  AND e.action = 'send_attempt'
ORDER BY slot_at
