-- read_ruleset(workspace_id) -> the bot's settings and its enabled rules, as of one moment
--
-- rules_seq    the one of take_chats: what was read is current as long as that returns no higher one
CREATE OR REPLACE FUNCTION read_ruleset(p_workspace_id uuid)
RETURNS TABLE (
    rules_seq bigint,
    provider text,
    auth_ref text,
    rate_group text,
    pace interval,
    settings jsonb,
    rules jsonb
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT s.rules_seq, s.provider, s.auth_ref, s.rate_group, greatest(rate_step(s.chat_rps), rate_step(g.rate_rps)),
           to_jsonb(s), coalesce(r.rules, '[]')
    FROM bot_settings s
    JOIN platform_limits g
      ON g.workspace_id = s.workspace_id
     AND g.platform = s.provider
     AND g.rate_group = s.rate_group
    CROSS JOIN LATERAL (
        SELECT jsonb_agg(to_jsonb(r) ORDER BY r.rule_id) AS rules
        FROM bot_rules r
        WHERE r.workspace_id = p_workspace_id
          AND r.enabled
    ) AS r
    WHERE s.workspace_id = p_workspace_id
$$;
