-- condition_bot_inbox(older_than)
-- -> the active workspaces in which updates of customers are unanswered for longer
--
-- found     how many of them
-- causes    why, as far as it is known: the bot is switched off (bot_off), its platform does not answer (platform_away),
--           the bot fails in this workspace (set_aside), a reply to an earlier update is not sent yet (reply_waits);
--           else unanswered: no bot is running, or it does not keep up
CREATE OR REPLACE FUNCTION condition_bot_inbox(p_older_than interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
SET enable_nestloop = off
AS $$
    WITH replies AS MATERIALIZED ( -- read once: a look-up for each update would cost more than reading them
        SELECT DISTINCT b.workspace_id, b.chat_id
        FROM bot_outbox b
        WHERE b.sent_at IS NULL
          AND b.failed_at IS NULL
    )
    SELECT u.workspace_id, sum(u.updates)::bigint, min(u.since),
           jsonb_agg(jsonb_build_object('name', 'update', 'code', u.code, 'count', u.updates)
                     ORDER BY u.updates DESC, u.code)
    FROM (
        SELECT i.workspace_id, why.code, count(*) AS updates, min(i.ts) AS since
        FROM bot_inbox i
        JOIN workspaces w
          ON w.workspace_id = i.workspace_id
         AND w.status = 'active'
        LEFT JOIN bot_settings s ON s.workspace_id = i.workspace_id
        LEFT JOIN platform_limits g
          ON g.workspace_id = s.workspace_id
         AND g.platform = s.provider
         AND g.rate_group = s.rate_group
        LEFT JOIN replies r
          ON r.workspace_id = i.workspace_id
         AND r.chat_id = i.chat_id
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN s.enabled IS NOT TRUE THEN 'bot_off'
                WHEN g.circuit <> 'closed' THEN 'platform_away'
                WHEN EXISTS (
                    SELECT 1 FROM set_aside a WHERE a.workspace_id = i.workspace_id AND a.work = 'bot_turns'
                ) THEN 'set_aside'
                WHEN r.chat_id IS NOT NULL THEN 'reply_waits'
                ELSE 'unanswered'
            END AS code
        ) AS why
        WHERE i.processed_at IS NULL
          AND i.ts < (SELECT clock_timestamp() - p_older_than)
        GROUP BY i.workspace_id, why.code
    ) AS u
    GROUP BY u.workspace_id
$$;
