-- verify_events(workspace_id, after_ts, after_id, limit, since, cursor, most) -> the next events, and their orphans
--
-- Walks the events of a workspace by key: give last_ts and last_id as `after` until nothing was checked.
--
-- seqs, ids    of those that the audit stream must have: not older than `since`, and passed by the relay when `cursor`
--              was read (audit_cursor). None without a cursor.
-- differences  [{"kind": "orphan", "event_id", "delivery_id", "events": action, "row": null}]: its delivery is not
--              there. What retention has taken away is not missed: `forgotten` says until when it may be gone. Nor
--              is what a stale commit speaks of, which may never have been.
CREATE OR REPLACE FUNCTION verify_events(
    p_workspace_id uuid,
    p_after_ts timestamptz,
    p_after_id uuid,
    p_limit int DEFAULT 5000,
    p_since timestamptz DEFAULT '-infinity',
    p_cursor jsonb DEFAULT NULL,
    p_most int DEFAULT 100
)
RETURNS TABLE (
    checked bigint,
    last_ts timestamptz,
    last_id uuid,
    found bigint,
    differences jsonb,
    seqs bigint[],
    ids uuid[]
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH page AS MATERIALIZED (
        SELECT e.ts, e.id, e.delivery_id, e.action, e.seq, e.xid,
               CASE WHEN e.action = 'checkpoint' THEN (e.meta ->> 'changed_at')::timestamptz ELSE e.ts END AS changed_at
        FROM events e
        WHERE e.workspace_id = p_workspace_id
          AND e.ts >= p_after_ts
          AND (e.ts, e.id) > (p_after_ts, p_after_id)
        ORDER BY e.ts, e.id
        LIMIT p_limit
    ), passed AS MATERIALIZED (
        SELECT array_agg(p.seq ORDER BY p.ts, p.id) AS seqs, array_agg(p.id ORDER BY p.ts, p.id) AS ids
        FROM page p
        WHERE p_cursor IS NOT NULL
          AND p.ts >= p_since
          AND NOT (p.xid >= (p_cursor ->> 'lo')::xid8
                   AND p.seq > (p_cursor ->> 'floor_seq')::bigint
                   AND NOT (p.xid < (p_cursor ->> 'hi')::xid8 AND p.seq <= (p_cursor ->> 'seq_done')::bigint))
    ), orphans AS MATERIALIZED (
        SELECT p.id, p.delivery_id, p.action
        FROM page p
        WHERE p.delivery_id IS NOT NULL
          AND p.action <> 'stale_commit'
          AND NOT EXISTS (
              SELECT 1
              FROM deliveries d
              WHERE d.workspace_id = p_workspace_id
                AND d.delivery_id = p.delivery_id
          )
          AND p.changed_at >= coalesce((SELECT f.until FROM forgotten f WHERE f.what = 'deliveries'), '-infinity')
    )
    SELECT (SELECT count(*) FROM page),
           l.ts, l.id,
           (SELECT count(*) FROM orphans),
           coalesce((
               SELECT jsonb_agg(jsonb_build_object(
                   'kind', 'orphan', 'event_id', o.id, 'delivery_id', o.delivery_id, 'events', o.action, 'row', NULL))
               FROM (SELECT * FROM orphans LIMIT p_most) AS o
           ), '[]'),
           coalesce(s.seqs, '{}'), coalesce(s.ids, '{}')
    FROM passed s
    LEFT JOIN (SELECT p.ts, p.id FROM page p ORDER BY p.ts DESC, p.id DESC LIMIT 1) AS l ON true
$$;
