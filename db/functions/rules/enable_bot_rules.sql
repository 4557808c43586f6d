-- enable_bot_rules(workspace_id, release, operator, reason, lint) -> one verdict per rule
--
-- Makes versions of rules answer, or none of a rule, all in one transaction: a turn is decided by all of the release or
-- by none of it.
--
-- release   [{"rule_id", "version"}], each rule once; version null disables the rule
-- lint      what the caller found in the rules as they will be: {"errors", "forced", "rules_seq", "was", "is"}; rules_seq
--           is that of the rules it looked at, was and is are the hashes before and after
-- Verdicts  enabled, disabled (with the version that answered before), unchanged
-- Appends   bot_rules_changed with both hashes, if anything changed
-- Locks     bot_settings by key, bot_rules
-- Raises    AP010 without operator or reason; AP014 for a workspace without a bot, a rule that is there twice, a version that is
--           not there, errors that were not forced, or rules that changed since the caller looked at them
CREATE OR REPLACE FUNCTION enable_bot_rules(
    p_workspace_id uuid,
    p_release jsonb,
    p_operator text,
    p_reason text,
    p_lint jsonb DEFAULT '{}'
)
RETURNS TABLE (rule_id text, was int, "is" int, verdict text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _seq bigint := lock_bot_rules(p_workspace_id);
    _twice text;
    _missing text;
    _release jsonb;
BEGIN
    IF (p_lint ->> 'rules_seq')::bigint <> _seq THEN
        RAISE EXCEPTION 'the rules were changed meanwhile' USING ERRCODE = 'AP014', HINT = 'look at them and try again';
    END IF;
    IF (p_lint ->> 'errors')::int > 0 AND NOT coalesce((p_lint ->> 'forced')::boolean, false) THEN
        RAISE EXCEPTION 'the rules have % errors', p_lint ->> 'errors'
            USING ERRCODE = 'AP014', HINT = '`autopost bot lint` names them';
    END IF;
    SELECT g ->> 'rule_id'
    INTO _twice
    FROM jsonb_array_elements(p_release) AS g
    GROUP BY 1
    HAVING count(*) > 1
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'rule % is there twice', _twice USING ERRCODE = 'AP014', HINT = 'name one version of it';
    END IF;
    SELECT format('rule %s has no version %s', g ->> 'rule_id', coalesce(g ->> 'version', 'at all'))
    INTO _missing
    FROM jsonb_array_elements(p_release) AS g
    WHERE NOT EXISTS (
        SELECT 1
        FROM bot_rules b
        WHERE b.workspace_id = p_workspace_id
          AND b.rule_id = g ->> 'rule_id'
          AND b.version = coalesce((g ->> 'version')::int, b.version)
    )
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '%', _missing USING ERRCODE = 'AP014', HINT = '`autopost bot rules list` shows all versions';
    END IF;

    _release := (
        SELECT jsonb_agg(jsonb_build_object('rule_id', g ->> 'rule_id', 'was', b.version, 'is', (g ->> 'version')::int)
                         ORDER BY n)
        FROM jsonb_array_elements(p_release) WITH ORDINALITY AS g (g, n)
        LEFT JOIN bot_rules b
          ON b.workspace_id = p_workspace_id
         AND b.rule_id = g ->> 'rule_id'
         AND b.enabled
        WHERE b.version IS DISTINCT FROM (g ->> 'version')::int
    );
    UPDATE bot_rules b
    SET enabled = false
    FROM jsonb_array_elements(_release) AS g
    WHERE b.workspace_id = p_workspace_id
      AND b.rule_id = g ->> 'rule_id'
      AND b.enabled;
    UPDATE bot_rules b
    SET enabled = true
    FROM jsonb_array_elements(_release) AS g
    WHERE b.workspace_id = p_workspace_id
      AND b.rule_id = g ->> 'rule_id'
      AND b.version = (g ->> 'is')::int;
    IF _release IS NOT NULL THEN
        INSERT INTO events (workspace_id, action, meta)
        VALUES (p_workspace_id, 'bot_rules_changed', event_meta(NULL, NULL, _signature || jsonb_build_object(
            'what', 'enabled', 'rules', _release, 'was', p_lint -> 'was', 'is', p_lint -> 'is',
            'forced', coalesce((p_lint ->> 'forced')::boolean, false) AND (p_lint ->> 'errors')::int > 0)));
    END IF;

    RETURN QUERY
    SELECT g ->> 'rule_id', coalesce((c ->> 'was')::int, (g ->> 'version')::int), (g ->> 'version')::int,
           CASE WHEN c IS NULL THEN 'unchanged' WHEN (g ->> 'version') IS NULL THEN 'disabled' ELSE 'enabled' END
    FROM jsonb_array_elements(p_release) WITH ORDINALITY AS g (g, n)
    LEFT JOIN jsonb_array_elements(_release) AS c ON c ->> 'rule_id' = g ->> 'rule_id'
    ORDER BY n;
END $$;
