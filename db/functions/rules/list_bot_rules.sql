-- list_bot_rules(workspace_id) -> every version of every rule, the newest first
CREATE OR REPLACE FUNCTION list_bot_rules(p_workspace_id uuid)
RETURNS TABLE (rule_id text, version int, enabled boolean, created_at timestamptz, rule jsonb)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT r.rule_id, r.version, r.enabled, r.created_at, to_jsonb(r)
    FROM bot_rules r
    WHERE r.workspace_id = p_workspace_id
    ORDER BY r.rule_id, r.version DESC
$$;
