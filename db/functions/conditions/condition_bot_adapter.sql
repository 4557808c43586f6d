-- condition_bot_adapter(in_a_row) -> the workspaces whose last replies all failed for good, with the same code
--
-- Customers who stopped the bot (chat_denied) and replies that an operator gave up (manual_skip) say nothing about it.
-- One reply that is sent ends the condition, and so does an hour without replies.
CREATE OR REPLACE FUNCTION condition_bot_adapter(p_in_a_row bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT w.workspace_id, l.failures, l.since,
           jsonb_build_array(jsonb_build_object('name', 'reply', 'code', l.code, 'count', l.failures))
    FROM workspaces w
    CROSS JOIN LATERAL (
        SELECT count(*) AS failures, min(e.ts) AS since, min(e.code) AS code, count(DISTINCT e.code) AS codes
        FROM (
            SELECT e.ts, coalesce(e.error ->> 'code', 'unknown') AS code
            FROM events e
            WHERE e.workspace_id = w.workspace_id
              AND e.ts > (SELECT clock_timestamp() - interval '1 hour')
              AND e.result = 'error' -- as the index of errors has them
              AND e.action = 'bot_reply_failed'
              AND coalesce(e.error ->> 'code', 'unknown') NOT IN ('chat_denied', 'manual_skip')
            ORDER BY e.ts DESC
            LIMIT p_in_a_row
        ) AS e
    ) AS l
    WHERE w.status <> 'disabled'
      AND l.failures = p_in_a_row
      AND l.codes = 1
      AND NOT EXISTS (
          SELECT 1
          FROM bot_outbox b
          WHERE b.workspace_id = w.workspace_id
            AND b.sent_at > l.since
      )
$$;
