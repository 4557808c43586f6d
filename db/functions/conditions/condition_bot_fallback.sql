-- condition_bot_fallback(share, least) -> the workspaces whose bot understands too little
--
-- Within an hour more than this share of the messages matched no rule, of `least` messages or more: so the first message
-- of a quiet night is no alarm.
--
-- found     how many matched no rule
-- causes    what the bot said instead; no text of a customer
CREATE OR REPLACE FUNCTION condition_bot_fallback(p_share numeric, p_least bigint DEFAULT 20)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT w.workspace_id, f.clarified + f.escalated, f.since,
           jsonb_build_array(jsonb_build_object('name', 'message', 'code', 'clarified', 'count', f.clarified),
                             jsonb_build_object('name', 'message', 'code', 'escalated', 'count', f.escalated))
    FROM workspaces w
    CROSS JOIN LATERAL (
        SELECT count(*) AS turns,
               count(*) FILTER (WHERE l.meta ->> 'outcome' = 'clarified') AS clarified,
               count(*) FILTER (WHERE l.meta ->> 'outcome' = 'escalated') AS escalated,
               min(l.ts) FILTER (WHERE l.meta ->> 'outcome' IN ('clarified', 'escalated')) AS since
        FROM bot_logs l
        WHERE l.workspace_id = w.workspace_id
          AND l.ts > (SELECT clock_timestamp() - interval '1 hour')
          AND l.meta ->> 'outcome' IN ('matched', 'captured', 'digressed', 'invalid', 'clarified', 'escalated')
    ) AS f
    WHERE w.status <> 'disabled'
      AND f.turns >= p_least
      AND f.clarified + f.escalated > p_share * f.turns
$$;
