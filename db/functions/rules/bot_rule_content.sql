-- bot_rule_content(rule) -> what a rule says, without what is the default: equal contents answer equally
--
-- rule      the columns of bot_rules as one object, or an entry of a rules file
CREATE OR REPLACE FUNCTION bot_rule_content(p_rule jsonb)
RETURNS jsonb
LANGUAGE sql
IMMUTABLE
SET search_path = public, pg_temp
AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'intent', p_rule -> 'intent',
        'pattern', (SELECT jsonb_object_agg(f.key, f.value)
                    FROM jsonb_each(p_rule -> 'pattern') AS f
                    WHERE f.value NOT IN ('[]', 'false', 'null')),
        'priority', coalesce(nullif(p_rule -> 'priority', 'null'), '0'),
        'max_turns', coalesce(nullif(p_rule -> 'max_turns', 'null'), '5'),
        'state', p_rule -> 'state',
        'capture', p_rule -> 'capture',
        'accept', (SELECT jsonb_object_agg(f.key, f.value)
                   FROM jsonb_each(nullif(p_rule -> 'accept', 'null')) AS f
                   WHERE f.value NOT IN ('[]', 'false', 'null')),
        'response_template', p_rule -> 'response_template',
        'invalid_template', p_rule -> 'invalid_template',
        'buttons', nullif(p_rule -> 'buttons', '[]'),
        'next_state', p_rule -> 'next_state',
        'description', p_rule -> 'description'
    ))
$$;
