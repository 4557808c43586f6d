-- relay_lag(blocking) -> what the audit stream does not have yet: always one row
--
-- events, seconds   how many are waiting (100,000 are counted at most) and how long the oldest has; 0 while no relay
--                   has ever run here
-- blocking_*        what delays them: the oldest transaction of the whole cluster, when it has been open for longer
--                   than `blocking` and something waits for its end. Of its query only the first word is shown: the
--                   rest may hold private data. A prepared transaction has no pid.
CREATE OR REPLACE FUNCTION relay_lag(p_blocking interval DEFAULT '5 seconds')
RETURNS TABLE (
    events bigint,
    seconds double precision,
    blocking_pid int,
    blocking_application text,
    blocking_state text,
    blocking_seconds double precision,
    blocking_command text
)
LANGUAGE sql
VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off -- along the index by xid, up to the limit
AS $$
    WITH horizon AS (
        SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin
    ), waiting AS (
        SELECT e.ts, e.xid
        FROM relay_state r
        CROSS JOIN LATERAL (
            SELECT w.ts, w.xid
            FROM events w
            WHERE w.xid >= r.lo
              AND w.seq > coalesce(r.sweep_from, r.floor_seq)
              AND NOT (w.xid < r.hi AND w.seq <= r.seq_done)
              AND w.ts > r.since
            ORDER BY w.xid
            LIMIT 100000
        ) AS e
        WHERE r.relay = 'audit'
    ), lag AS (
        SELECT count(*) AS events, min(ts) AS oldest, max(xid) AS newest FROM waiting
    ), open_transactions AS (
        SELECT a.pid, a.application_name, a.state, a.xact_start, substring(a.query FROM '^\s*([A-Za-z]+)') AS command
        FROM pg_stat_activity a, horizon h
        WHERE a.backend_xid = h.xmin::xid
        UNION ALL
        SELECT NULL, 'prepared transaction ' || p.gid, 'prepared', p.prepared, NULL
        FROM pg_prepared_xacts p, horizon h
        WHERE p.transaction = h.xmin::xid
    )
    SELECT l.events,
           coalesce(greatest(extract(epoch FROM clock_timestamp() - l.oldest), 0), 0)::double precision,
           o.pid, o.application_name, o.state,
           extract(epoch FROM clock_timestamp() - o.xact_start)::double precision, upper(o.command)
    FROM lag l
    CROSS JOIN horizon h
    LEFT JOIN open_transactions o
      ON o.xact_start < clock_timestamp() - p_blocking
     AND l.newest >= h.xmin
    LIMIT 1
$$;
