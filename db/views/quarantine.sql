-- quarantine: every channel that is paused or disabled, and the deliveries that wait for it.
--
-- since, reason   the last event that closed it: the code of the error, or the operator's reason; null without an event
-- until           when the pause ends by itself; null for a disabled channel
-- waiting         queued deliveries; held: those of them that wait for resolve_ambiguous
-- oldest_at       when the oldest of them was queued
-- last_seen_at    when the content of the newest of them was last posted: used by the catch-up policy
CREATE OR REPLACE VIEW quarantine AS
SELECT c.workspace_id, c.channel_id, c.platform, c.rate_group, c.title,
       CASE WHEN c.enabled THEN 'paused' ELSE 'disabled' END AS state,
       closed.ts AS since,
       CASE WHEN c.enabled THEN c.paused_until END AS until,
       coalesce(closed.error ->> 'code', closed.meta ->> 'reason') AS reason,
       closed.meta ->> 'operator' AS operator,
       c.catch_up,
       kept.waiting, kept.held, oldest.created_at AS oldest_at, newest.last_seen_at
FROM channels c
LEFT JOIN LATERAL (
    SELECT e.ts, e.error, e.meta
    FROM events e
    WHERE e.workspace_id = c.workspace_id
      AND e.channel_id = c.channel_id
      AND e.delivery_id IS NULL
      AND e.action = CASE WHEN c.enabled THEN 'channel_paused' ELSE 'channel_disabled' END::event_action
    ORDER BY e.ts DESC
    LIMIT 1
) AS closed ON true
CROSS JOIN LATERAL ( -- of all of them the narrow rows of the queue alone: there may be millions
    SELECT count(*) AS waiting,
           count(*) FILTER (WHERE q.status = 'retry' AND q.due_at = 'infinity') AS held,
           min(q.delivery_id::text)::uuid AS oldest,
           max(q.delivery_id::text)::uuid AS newest
    FROM delivery_queue q
    WHERE q.workspace_id = c.workspace_id
      AND q.channel_id = c.channel_id
      AND q.claim_token IS NULL
) AS kept
LEFT JOIN LATERAL ( -- ids are ordered by time
    SELECT d.created_at
    FROM deliveries d
    WHERE d.workspace_id = c.workspace_id
      AND d.delivery_id = kept.oldest
    LIMIT 1
) AS oldest ON true
LEFT JOIN LATERAL (
    SELECT m.last_seen_at
    FROM deliveries d
    CROSS JOIN LATERAL (
        SELECT m.last_seen_at
        FROM messages m
        WHERE m.workspace_id = d.workspace_id
          AND m.message_id = d.message_id
        LIMIT 1
    ) AS m
    WHERE d.workspace_id = c.workspace_id
      AND d.delivery_id = kept.newest
    LIMIT 1
) AS newest ON true
WHERE NOT c.enabled
   OR c.paused_until > clock_timestamp();
