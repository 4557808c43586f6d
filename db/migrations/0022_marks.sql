-- An emptied stream goes on counting, so nothing but its first number tells that it was emptied once the next message is in
-- it. By these marks the relay knows which messages are too young to have left by their age.
CREATE TABLE relay_marks (
    marked_at timestamptz PRIMARY KEY,
    stream_seq bigint NOT NULL
);

-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS adopt_stream(uuid, timestamptz, bigint, bigint, interval);
