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
       kept.waiting, kept.held, kept.oldest_at, kept.last_seen_at
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
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting,
           count(*) FILTER (WHERE d.status = 'retry' AND d.next_retry_at = 'infinity') AS held,
           min(d.created_at) AS oldest_at,
           max(m.last_seen_at) AS last_seen_at
    FROM delivery_queue q
    CROSS JOIN LATERAL (
        -- One probe per waiting delivery, whatever the planner's estimate for reading them all.
        SELECT d.message_id, d.status, d.next_retry_at, d.created_at
        FROM deliveries d
        WHERE d.workspace_id = q.workspace_id
          AND d.delivery_id = q.delivery_id
        LIMIT 1
    ) AS d
    JOIN messages m
      ON m.workspace_id = q.workspace_id
     AND m.message_id = d.message_id
    WHERE q.workspace_id = c.workspace_id
      AND q.channel_id = c.channel_id
      AND q.claim_token IS NULL
) AS kept
WHERE NOT c.enabled
   OR c.paused_until > clock_timestamp();
