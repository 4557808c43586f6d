-- mark_stream(last_seq, max_age)
--
-- Messages of the audit stream beyond `last_seq` are younger than now: stored once an hour, for as long as a message
-- stays. See adopt_stream.
CREATE OR REPLACE FUNCTION mark_stream(p_last_seq bigint, p_max_age interval)
RETURNS void
LANGUAGE sql
VOLATILE
AS $$
    DELETE FROM relay_marks WHERE marked_at < clock_timestamp() - p_max_age;
    INSERT INTO relay_marks (marked_at, stream_seq)
    SELECT clock_timestamp(), p_last_seq
    WHERE NOT EXISTS (SELECT 1 FROM relay_marks WHERE marked_at > clock_timestamp() - interval '1 hour')
$$;
