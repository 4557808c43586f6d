-- What a commit may write is what it has locked, groups too; a claim locks the groups once, before the channels.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS lock_gates(uuid, jsonb);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS end_pauses(uuid, uuid, timestamptz);
