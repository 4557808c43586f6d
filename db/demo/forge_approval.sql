-- Sabotage: the approval is of another plan than the one that the channel shows. $1 workspace, $2 publication
UPDATE publications
SET approved_plan_hash = 'forged'
WHERE workspace_id = $1
  AND publication_id = $2
