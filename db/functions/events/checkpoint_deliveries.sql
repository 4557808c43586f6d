-- checkpoint_deliveries(partition, limit) -> how many deliveries were checked; null when none are left
--
-- Before a partition of events is dropped: each delivery that stays and has events in it gets one event with its state,
-- and the fold begins there (fold_deliveries). Called repeatedly; its position is kept, so that another caller goes on
-- there. A delivery with a later checkpoint needs none.
--
-- meta         {"status", "provider_message_id", "sent_at", "slot_at", "next_retry_at", "skipped",
--               "event_count": as the row has it from then on, "changed_at": when the row last changed, "trace_id"}
-- Changes      deliveries.event_count; updated_at stays, because nothing happened to the delivery
-- Appends      checkpoint
-- Locks        walk_cursors (one caller at a time for a partition), then deliveries by key, waiting: the state and the
--              number of events must belong together
CREATE OR REPLACE FUNCTION checkpoint_deliveries(p_partition text, p_limit int)
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    _walk text := 'checkpoints of ' || p_partition;
    _place record;
    _after uuid;
    _seen int;
    _last uuid;
    _workspaces uuid[];
    _deliveries uuid[];
BEGIN
    SELECT p.* INTO STRICT _place FROM event_partitions() AS p WHERE p.partition = p_partition;
    INSERT INTO walk_cursors (walk) VALUES (_walk) ON CONFLICT DO NOTHING;
    SELECT (w.after ->> 'delivery_id')::uuid INTO _after FROM walk_cursors w WHERE w.walk = _walk FOR UPDATE;

    WITH page AS MATERIALIZED (
        SELECT DISTINCT ON (e.delivery_id) e.delivery_id, e.workspace_id
        FROM events e
        WHERE e.ts >= _place.since
          AND e.ts < _place.until
          AND e.delivery_id > coalesce(_after, '00000000-0000-0000-0000-000000000000')
        ORDER BY e.delivery_id
        LIMIT p_limit
    )
    SELECT count(*), (array_agg(p.delivery_id ORDER BY p.delivery_id DESC))[1],
           array_agg(p.workspace_id ORDER BY p.workspace_id, p.delivery_id) FILTER (WHERE d.kept),
           array_agg(p.delivery_id ORDER BY p.workspace_id, p.delivery_id) FILTER (WHERE d.kept)
    INTO _seen, _last, _workspaces, _deliveries
    FROM page p
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT 1
            FROM deliveries d
            WHERE d.workspace_id = p.workspace_id
              AND d.delivery_id = p.delivery_id
        ) AND NOT EXISTS (
            SELECT 1
            FROM events c
            WHERE c.delivery_id = p.delivery_id
              AND c.workspace_id = p.workspace_id
              AND c.ts >= _place.until
              AND c.action = 'checkpoint'
        ) AS kept
    ) AS d;
    IF _seen = 0 THEN
        UPDATE walk_cursors SET done_at = clock_timestamp() WHERE walk = _walk;
        RETURN NULL;
    END IF;

    PERFORM 1
    FROM unnest(_workspaces, _deliveries) AS k (workspace_id, delivery_id)
    CROSS JOIN LATERAL (
        SELECT 1
        FROM deliveries d
        WHERE d.workspace_id = k.workspace_id
          AND d.delivery_id = k.delivery_id
        FOR UPDATE
    ) AS d;
    WITH held AS MATERIALIZED (
        UPDATE deliveries d
        SET event_count = d.event_count + 1
        FROM unnest(_workspaces, _deliveries) AS k (workspace_id, delivery_id)
        WHERE d.workspace_id = k.workspace_id
          AND d.delivery_id = k.delivery_id
        RETURNING d.*
    )
    INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
    SELECT h.workspace_id, h.delivery_id, h.message_id, h.channel_id, 'checkpoint', h.attempt,
           event_meta(h.trace_id, NULL, jsonb_build_object(
               'status', CASE -- a claim by hand leaves no event for the fold
                             WHEN h.status <> 'claimed' THEN h.status
                             WHEN h.attempt > 0 THEN 'retry'
                             ELSE 'queued'
                         END,
               'provider_message_id', h.provider_message_id, 'sent_at', h.sent_at, 'slot_at', h.slot_at,
               'next_retry_at', h.next_retry_at, 'skipped', CASE WHEN g.skipped_at IS NOT NULL THEN true END,
               'event_count', h.event_count, 'changed_at', h.updated_at))
    FROM held h
    LEFT JOIN dead_letters g
      ON g.workspace_id = h.workspace_id
     AND g.delivery_id = h.delivery_id
    ORDER BY h.delivery_id;

    UPDATE walk_cursors SET after = jsonb_build_object('delivery_id', _last) WHERE walk = _walk;
    RETURN _seen;
END $$;
