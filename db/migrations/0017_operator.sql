-- A rate group belongs to a platform: what an operator does to a group can name it.

-- Only operators call these, by the function files of the same version, which make them again.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS channels_of(uuid, uuid, text);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS open_channels(uuid, uuid, text, text, text, boolean);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS pause_channels(uuid, uuid, text, text, text, interval);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS resume_channels(uuid, uuid, text, text, text);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS disable_channels(uuid, uuid, text, text, text);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS enable_channels(uuid, uuid, text, text, text);
