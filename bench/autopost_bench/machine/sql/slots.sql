-- The ledger: every slot that was given, by channel. `in_chat` unless it is of the group alone: taken `beside` the chat, or
-- missed, and the call went out in another. See slot_log.
WITH given AS (
    SELECT e.channel_id, (e.meta ->> 'slot_at')::timestamptz AS slot_at, false AS beside
    FROM events e
    WHERE e.workspace_id = $1
      AND e.action = 'send_attempt'
    UNION ALL
    SELECT l.channel_id, l.slot_at, l.beside
    FROM slot_log l
    WHERE l.workspace_id = $1
)
SELECT g.channel_id, g.slot_at,
       NOT g.beside AND NOT EXISTS (
           SELECT 1
           FROM slot_log l
           WHERE l.workspace_id = $1
             AND l.channel_id = g.channel_id
             AND NOT l.beside
             AND l.missed = g.slot_at
       ) AS in_chat
FROM given g
ORDER BY g.slot_at
