-- verify_bot_ruleset(workspace_id, ruleset_hash) -> {"rules", "settings"} that turns were decided by; null if not kept
CREATE OR REPLACE FUNCTION verify_bot_ruleset(p_workspace_id uuid, p_ruleset_hash text)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT jsonb_build_object('rules', r.rules, 'settings', r.settings)
    FROM bot_rulesets r
    WHERE r.workspace_id = p_workspace_id
      AND r.ruleset_hash = p_ruleset_hash
$$;
