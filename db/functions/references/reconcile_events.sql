-- reconcile_events(limit) -> {"events", "missing", "over"}
--
-- Reads the next events of the log, by key, and stores which rows they refer to are missing: missing_references. The
-- log has no foreign keys, so this is what finds a lost row. The position is kept; at the end of the log it starts
-- again, and entries from before that were not seen again are deleted.
--
-- Not missing  what was deleted on purpose: a delivery that had ended, or a message, whose last change was before
--              what `retention_marks` says. Of a delivery only checkpoints are left by then, and they hold when it last
--              changed and how it ended; for any other event its own time counts. An hour of grace: an event is written
--              a little after the row.
-- over         this was the end of the log
-- Cost         one probe for each distinct row that these events refer to
-- Locks        walk_cursors: one caller at a time
CREATE OR REPLACE FUNCTION reconcile_events(p_limit int, p_most int DEFAULT 10000)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    _walk record;
    _seen int;
    _missing int;
    _after jsonb;
BEGIN
    INSERT INTO walk_cursors (walk, begun_at) VALUES ('events', clock_timestamp()) ON CONFLICT DO NOTHING;
    SELECT coalesce(w.after ->> 'workspace_id', '00000000-0000-0000-0000-000000000000')::uuid AS workspace_id,
           coalesce(w.after ->> 'ts', '-infinity')::timestamptz AS ts,
           coalesce(w.after ->> 'id', '00000000-0000-0000-0000-000000000000')::uuid AS id,
           w.begun_at
    INTO _walk
    FROM walk_cursors w
    WHERE w.walk = 'events'
    FOR UPDATE;

    WITH page AS MATERIALIZED (
        SELECT e.workspace_id, e.ts, e.id, e.delivery_id, e.message_id, e.channel_id,
               CASE WHEN e.action = 'checkpoint' THEN coalesce((e.meta ->> 'changed_at')::timestamptz, e.ts) ELSE e.ts
               END - interval '1 hour' AS changed_at,
               e.action <> 'checkpoint'
                   OR is_final((e.meta ->> 'status')::delivery_status) AS may_have_ended
        FROM events e
        WHERE (e.workspace_id, e.ts, e.id) > (_walk.workspace_id, _walk.ts, _walk.id)
        ORDER BY e.workspace_id, e.ts, e.id
        LIMIT p_limit
    ), referred AS MATERIALIZED (
        SELECT p.workspace_id, r.what, r.ref, count(*) AS events, min(p.ts) AS first_event_at,
               (array_agg(p.id ORDER BY p.ts, p.id))[1] AS first_event_id
        FROM page p
        CROSS JOIN LATERAL (
            VALUES ('delivery', p.delivery_id), ('message', p.message_id), ('channel', p.channel_id)
        ) AS r (what, ref)
        WHERE r.ref IS NOT NULL
          AND NOT EXISTS (
              SELECT 1
              FROM retention_marks f
              WHERE r.what <> 'channel'
                AND f.what IN ('deliveries', 'messages')
                AND f.what <> CASE WHEN r.what = 'delivery' THEN 'messages' ELSE '' END
                AND f.until > p.changed_at
                AND p.may_have_ended
          )
        GROUP BY p.workspace_id, r.what, r.ref
    ), missing AS MATERIALIZED (
        SELECT r.*
        FROM referred r
        WHERE CASE r.what
            WHEN 'delivery' THEN NOT EXISTS (
                SELECT 1 FROM deliveries d WHERE d.workspace_id = r.workspace_id AND d.delivery_id = r.ref)
            WHEN 'message' THEN NOT EXISTS (
                SELECT 1 FROM messages m WHERE m.workspace_id = r.workspace_id AND m.message_id = r.ref)
            ELSE NOT EXISTS (
                SELECT 1 FROM channels c WHERE c.workspace_id = r.workspace_id AND c.channel_id = r.ref)
        END
        ORDER BY r.workspace_id, r.what, r.ref
        LIMIT p_most
    ), noted AS (
        INSERT INTO missing_references AS m (workspace_id, what, ref, events, first_event_id, first_event_at, seen_at)
        SELECT x.workspace_id, x.what, x.ref, x.events, x.first_event_id, x.first_event_at, clock_timestamp()
        FROM missing x
        WHERE (SELECT count(*) FROM missing_references) < p_most
        ON CONFLICT (workspace_id, what, ref) DO UPDATE
        SET events = excluded.events + CASE WHEN m.seen_at >= _walk.begun_at THEN m.events ELSE 0 END,
            seen_at = excluded.seen_at
    )
    SELECT (SELECT count(*) FROM page), (SELECT count(*) FROM missing),
           (SELECT jsonb_build_object('workspace_id', p.workspace_id, 'ts', p.ts, 'id', p.id)
            FROM page p
            ORDER BY p.workspace_id DESC, p.ts DESC, p.id DESC
            LIMIT 1)
    INTO _seen, _missing, _after;

    IF _seen < p_limit THEN
        DELETE FROM missing_references m WHERE m.seen_at < _walk.begun_at;
        UPDATE walk_cursors
        SET after = '{}',
            begun_at = clock_timestamp(),
            done_at = clock_timestamp()
        WHERE walk = 'events';
    ELSE
        UPDATE walk_cursors SET after = _after WHERE walk = 'events';
    END IF;
    RETURN jsonb_build_object('events', _seen, 'missing', _missing, 'over', _seen < p_limit);
END $$;
