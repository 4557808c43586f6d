-- A requeue by a filter takes a message as well, and its limit is of what comes back.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS requeue_matching(uuid, text, text, delivery_status, text, uuid, timestamptz, timestamptz, int,
                                         boolean, boolean, int);

-- Why a status token was revoked, beside who did it: of the operator's own no workspace tells it.
ALTER TABLE status_tokens ADD COLUMN revoked_reason text;
