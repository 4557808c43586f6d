-- import_bot_rules(workspace_id, rules, operator, reason) -> one verdict per rule
--
-- Adds new versions of rules. They answer nobody before enable_bot_rules names them.
--
-- rules     [{"rule_id", "intent", "pattern", …}], each rule once
-- Verdicts  added      with the new version
--           unchanged  the newest version says the same; an older one that does is added again, as the newest
-- Appends   bot_rules_changed, if any was added
-- Locks     bot_settings by key, so that versions are numbered one import after the other
-- Raises    AP010 without operator or reason, AP014 for a workspace without a bot or a rule that is there twice
CREATE OR REPLACE FUNCTION import_bot_rules(p_workspace_id uuid, p_rules jsonb, p_operator text, p_reason text)
RETURNS TABLE (rule_id text, version int, verdict text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _twice text;
BEGIN
    PERFORM lock_bot_rules(p_workspace_id);
    SELECT r ->> 'rule_id'
    INTO _twice
    FROM jsonb_array_elements(p_rules) AS r
    GROUP BY 1
    HAVING count(*) > 1
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'rule % is there twice', _twice USING ERRCODE = 'AP014';
    END IF;

    RETURN QUERY
    WITH given AS MATERIALIZED (
        SELECT g.r, g.place, g.r ->> 'rule_id' AS rule_id,
               (SELECT CASE WHEN bot_rule_content(to_jsonb(b)) = bot_rule_content(g.r) THEN b.version END
                FROM bot_rules b
                WHERE b.workspace_id = p_workspace_id
                  AND b.rule_id = g.r ->> 'rule_id'
                ORDER BY b.version DESC
                LIMIT 1) AS same,
               (SELECT coalesce(max(b.version), 0) + 1
                FROM bot_rules b
                WHERE b.workspace_id = p_workspace_id
                  AND b.rule_id = g.r ->> 'rule_id') AS following
        FROM jsonb_array_elements(p_rules) WITH ORDINALITY AS g (r, place)
    ), added AS (
        INSERT INTO bot_rules (workspace_id, rule_id, version, enabled, intent, pattern, priority, max_turns, state,
                               capture, accept, response_template, invalid_template, buttons, next_state, description)
        SELECT p_workspace_id, g.rule_id, g.following, false, g.r ->> 'intent', g.r -> 'pattern',
               coalesce((g.r ->> 'priority')::int, 0), coalesce((g.r ->> 'max_turns')::int, 5), g.r ->> 'state',
               g.r ->> 'capture', nullif(g.r -> 'accept', 'null'), g.r ->> 'response_template',
               g.r ->> 'invalid_template', coalesce(g.r -> 'buttons', '[]'), g.r ->> 'next_state',
               g.r ->> 'description'
        FROM given g
        WHERE g.same IS NULL
        RETURNING bot_rules.rule_id, bot_rules.version
    ), noted AS (
        INSERT INTO events (workspace_id, action, meta)
        SELECT p_workspace_id, 'bot_rules_changed', event_meta(NULL, NULL, _signature || jsonb_build_object(
            'what', 'imported', 'rules', jsonb_agg(jsonb_build_object('rule_id', a.rule_id, 'version', a.version))))
        FROM added a
        HAVING count(*) > 0
    )
    SELECT g.rule_id, coalesce(a.version, g.same), CASE WHEN a.version IS NULL THEN 'unchanged' ELSE 'added' END
    FROM given g
    LEFT JOIN added a ON a.rule_id = g.rule_id
    ORDER BY g.place;
END $$;
