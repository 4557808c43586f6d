-- expired_event_partitions(keep) -> the partitions of events in which every event is older than that, the oldest first
CREATE OR REPLACE FUNCTION expired_event_partitions(p_keep interval)
RETURNS TABLE (partition text)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT p.partition
    FROM event_partitions() AS p
    WHERE p.until <= clock_timestamp() - greatest(p_keep, interval '0')
$$;
