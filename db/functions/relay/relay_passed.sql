-- relay_passed(partition) -> whether the audit relay has published every event of a partition of events
--
-- False while no relay has ever run, while everything is being published again, and when the database was restored into
-- another cluster: transaction ids mean nothing across clusters, and floor_seq is what was published before that.
CREATE OR REPLACE FUNCTION relay_passed(p_partition text)
RETURNS boolean
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    SELECT count(*) > 0 AND bool_and(
               r.system_identifier = (SELECT c.system_identifier FROM pg_control_system() AS c)
               AND r.sweep_from IS NULL
               AND NOT EXISTS (
                   SELECT 1
                   FROM event_partitions() AS p
                   JOIN events e
                     ON e.ts >= p.since
                    AND e.ts < p.until
                   WHERE p.partition = p_partition
                     AND e.xid >= r.lo
                     AND e.seq > r.floor_seq
                     AND e.ts > r.since
               ))
    FROM relay_state r
$$;
