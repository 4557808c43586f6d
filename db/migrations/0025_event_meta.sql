-- A commit tells whose it is: its events have a run_id like every other. What is locked before the deliveries is told to
-- who locked it.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS commit_sent(uuid, uuid[], uuid[], text[]);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS commit_deliveries(uuid, jsonb, interval, int, double precision);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS sent_meta(text, uuid, text, jsonb, jsonb);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS lock_gates(uuid, jsonb);
