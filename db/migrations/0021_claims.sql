-- A claim tells once what its deliveries have in common, and what arrived is told by arrays: read four times out of one
-- JSON document it was a fifth of a commit.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS claim_deliveries(uuid, uuid, int, interval, interval, timestamptz);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS commit_sent(uuid, jsonb);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS hold_claims(uuid, jsonb);
