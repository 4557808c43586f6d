-- Sabotage: nobody takes the order number. $1 workspace
UPDATE bot_rules
SET enabled = false
WHERE workspace_id = $1
  AND rule_id = 'returns_order'
