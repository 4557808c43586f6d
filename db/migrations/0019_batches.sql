-- Posts are routed, admitted and enqueued in batches; the forms for one post at a time are gone. Nothing was released.

-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS admit_post(uuid, uuid, jsonb, text, boolean, boolean);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS enqueue_post(uuid, jsonb, timestamptz, boolean);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS routed_channels(uuid, jsonb);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS pass_gate(uuid, uuid, numeric);
