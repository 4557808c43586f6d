-- unknown_events(workspace_ids, timestamps, ids, seqs) -> the places, from 0, of those that no event here is
--
-- For what was read from the audit stream. Of a time whose events have left by retention nobody knows: these are not
-- named.
CREATE OR REPLACE FUNCTION unknown_events(
    p_workspace_ids uuid[],
    p_timestamps timestamptz[],
    p_ids uuid[],
    p_seqs bigint[]
)
RETURNS int[]
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH kept AS MATERIALIZED (
        SELECT min(p.since) AS since FROM event_partitions() AS p
    )
    SELECT coalesce(array_agg(g.place::int - 1 ORDER BY g.place), '{}')
    FROM unnest(p_workspace_ids, p_timestamps, p_ids, p_seqs) WITH ORDINALITY AS g (workspace_id, ts, id, seq, place)
    CROSS JOIN kept k
    LEFT JOIN LATERAL (
        SELECT true AS known
        FROM events e
        WHERE e.workspace_id = g.workspace_id
          AND e.ts = g.ts
          AND e.id = g.id
          AND e.seq = g.seq
        LIMIT 1
    ) AS e ON true
    WHERE e.known IS NULL
      AND g.ts >= k.since
$$;
