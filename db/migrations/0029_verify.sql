-- Verify folds max_attempts too, holds a message of the stream against the whole event, and counts by workspace.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS fold_deliveries(uuid, uuid[]);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS unknown_events(uuid[], timestamptz[], uuid[], bigint[]);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS verify_size();
