-- A slot may now be named without being taken, and one that was missed is given back. What the rows of a claim have in
-- common is text: nobody in the database looks into it.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS take_slot(uuid, uuid, uuid, interval, timestamptz, boolean);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS claim_deliveries(uuid, uuid, int, interval, interval, timestamptz);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS claimed_in_common(uuid, uuid[], uuid[]);
