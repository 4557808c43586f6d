-- partitions_ahead() -> for how long from now partitions of events exist, without a gap
--
-- Zero or less: every change of state is being refused right now.
CREATE OR REPLACE FUNCTION partitions_ahead()
RETURNS interval
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH RECURSIVE reach AS (
        SELECT clock_timestamp() AS until
        UNION
        SELECT p.until
        FROM reach r
        JOIN event_partitions() AS p
          ON p.since <= r.until
         AND p.until > r.until
    )
    SELECT max(r.until) - clock_timestamp() FROM reach r
$$;
