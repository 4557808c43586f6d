-- event_partitions() -> the partitions of events with the times they hold, the oldest first
CREATE OR REPLACE FUNCTION event_partitions()
RETURNS TABLE (partition text, since timestamptz, until timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT c.relname::text, b.bounds[1]::timestamptz AS since, b.bounds[2]::timestamptz
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    CROSS JOIN LATERAL (
        SELECT regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']+)''\) TO \(''([^'']+)''\)') AS bounds
    ) AS b
    WHERE i.inhparent = 'public.events'::regclass
      AND NOT i.inhdetachpending
    ORDER BY since
$$;
