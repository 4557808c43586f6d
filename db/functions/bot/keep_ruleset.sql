-- keep_ruleset(workspace_id, ruleset_hash, rules, settings)
--
-- Keeps what turns are decided by, once per hash, before the first of them is committed: the log names the hash, and
-- rules may be edited in place. Each load is noted, so that retention knows what is not used any more.
CREATE OR REPLACE FUNCTION keep_ruleset(p_workspace_id uuid, p_ruleset_hash text, p_rules jsonb, p_settings jsonb)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    INSERT INTO bot_rulesets (workspace_id, ruleset_hash, rules, settings)
    VALUES (p_workspace_id, p_ruleset_hash, p_rules, p_settings)
    ON CONFLICT (workspace_id, ruleset_hash) DO UPDATE
    SET last_loaded_at = clock_timestamp()
$$;
