-- After the demo: the newest version of the rule answers again, unless one does. $1 workspace
UPDATE bot_rules r
SET enabled = true
WHERE r.workspace_id = $1
  AND r.rule_id = 'returns_order'
  AND r.version = (
      SELECT max(v.version)
      FROM bot_rules v
      WHERE v.workspace_id = r.workspace_id
        AND v.rule_id = r.rule_id
      HAVING NOT bool_or(v.enabled)
  )
