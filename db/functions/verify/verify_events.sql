-- verify_events(workspace_id, after_ts, after_id, limit, since, cursor, most) -> the next events, and their orphans
--
-- Walks the events of a workspace by key: pass last_ts and last_id as `after` until nothing was checked.
--
-- seqs, ids    of those that the audit stream must have: not older than `since`, and passed by the relay when `cursor`
--              was read (audit_cursor). None without a cursor.
-- differences  the findings of verify_sends, and [{"kind": "orphan", "event_id", "delivery_id" | "message_id" |
--              "channel_id", "events": action, "row": null}]: its delivery, message or channel is missing. Excluded are
--              rows that retention deleted, by the rule of reconcile_events, and references of stale commits, which may
--              never have existed.
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
        SELECT e.ts, e.id, e.delivery_id, e.message_id, e.channel_id, e.action, e.seq, e.xid,
               CASE WHEN e.action = 'checkpoint' THEN coalesce((e.meta ->> 'changed_at')::timestamptz, e.ts) ELSE e.ts
               END - interval '1 hour' AS changed_at,
               e.action <> 'checkpoint'
                   OR is_final((e.meta ->> 'status')::delivery_status) AS may_have_ended
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
    ), referred AS MATERIALIZED (
        SELECT p.ts, p.id, p.action, r.what, r.ref
        FROM page p
        CROSS JOIN LATERAL (
            VALUES ('delivery', p.delivery_id), ('message', p.message_id), ('channel', p.channel_id)
        ) AS r (what, ref)
        WHERE r.ref IS NOT NULL
          AND p.action <> 'stale_commit'
          AND NOT EXISTS (
              SELECT 1
              FROM retention_marks f
              WHERE r.what <> 'channel'
                AND (f.what = 'deliveries' OR (f.what = 'messages' AND r.what = 'message'))
                AND f.until > p.changed_at
                AND p.may_have_ended
          )
    ), missing AS MATERIALIZED (
        SELECT r.what, r.ref
        FROM (SELECT DISTINCT what, ref FROM referred) AS r
        WHERE CASE r.what
            WHEN 'delivery' THEN NOT EXISTS (
                SELECT 1 FROM deliveries d WHERE d.workspace_id = p_workspace_id AND d.delivery_id = r.ref)
            WHEN 'message' THEN NOT EXISTS (
                SELECT 1 FROM messages m WHERE m.workspace_id = p_workspace_id AND m.message_id = r.ref)
            ELSE NOT EXISTS (
                SELECT 1 FROM channels c WHERE c.workspace_id = p_workspace_id AND c.channel_id = r.ref)
        END
    ), orphans AS MATERIALIZED (
        SELECT r.ts, r.id, r.action, r.what, r.ref
        FROM referred r
        JOIN missing USING (what, ref)
    ), sends AS MATERIALIZED (
        SELECT v.*
        FROM (SELECT p.ts, p.id FROM page p ORDER BY p.ts DESC, p.id DESC LIMIT 1) AS l
        CROSS JOIN LATERAL verify_sends(p_workspace_id, p_after_ts, p_after_id, l.ts, l.id) AS v
    )
    SELECT (SELECT count(*) FROM page),
           l.ts, l.id,
           (SELECT count(*) FROM orphans) + (SELECT count(*) FROM sends),
           coalesce((
               SELECT jsonb_agg(d.difference)
               FROM (
                   SELECT jsonb_build_object('kind', 'orphan', 'event_id', o.id, o.what || '_id', o.ref,
                                             'events', o.action, 'row', NULL) AS difference
                   FROM (SELECT * FROM orphans x ORDER BY x.ts, x.id, x.what LIMIT p_most) AS o
                   UNION ALL
                   SELECT jsonb_build_object('kind', v.kind, 'event_id', v.event_id, 'delivery_id', v.delivery_id,
                                             'channel_id', v.channel_id, 'events', v.told, 'row', v.found)
                   FROM (SELECT * FROM sends x ORDER BY x.event_id, x.kind LIMIT p_most) AS v
                   LIMIT p_most
               ) AS d
           ), '[]'),
           coalesce(s.seqs, '{}'), coalesce(s.ids, '{}')
    FROM passed s
    LEFT JOIN (SELECT p.ts, p.id FROM page p ORDER BY p.ts DESC, p.id DESC LIMIT 1) AS l ON true
$$;
