-- retain_deliveries(keep, after, limit) -> {"gone", "after"}
--
-- Deletes deliveries that ended longer ago than `keep`. Walks the messages of that age, because no delivery is older
-- than its message: begin with {}, continue with the `after` of the result until it is null. A call that has deleted
-- its full limit returns the position it was given.
--
-- Stays        what is live, what its channel's dedup still needs, and deliveries with a later event: an event that
--              changed nothing must still find its delivery
--              All of it while events are strict (events_are_strict)
-- Changes      retention_marks, so that events of these deliveries are not reported as orphans
-- Locks        deliveries by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_deliveries(p_keep interval, p_after jsonb, p_limit int)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    _cutoff timestamptz := clock_timestamp() - p_keep;
    _after_at timestamptz := coalesce((p_after ->> 'created_at')::timestamptz, '-infinity');
    _after_id uuid := (p_after ->> 'message_id')::uuid;
    _gone int;
    _page jsonb;
BEGIN
    IF events_are_strict() THEN
        RETURN jsonb_build_object('gone', 0, 'after', NULL);
    END IF;
    WITH page AS MATERIALIZED (
        SELECT m.workspace_id, m.message_id, m.created_at
        FROM messages m
        WHERE m.created_at < _cutoff
          AND m.created_at >= _after_at
          AND (m.created_at, m.message_id) > (_after_at, _after_id)
        ORDER BY m.created_at, m.message_id
        LIMIT p_limit
    ), old AS MATERIALIZED (
        SELECT d.workspace_id, d.delivery_id
        FROM page p
        CROSS JOIN LATERAL (
            SELECT d.*
            FROM deliveries d
            WHERE d.message_id = p.message_id
              AND d.workspace_id = p.workspace_id
              AND is_final(d.status)
              AND greatest(d.updated_at, d.sent_at, d.created_at) < _cutoff
            OFFSET 0
        ) AS d
        JOIN channels c
          ON c.workspace_id = d.workspace_id
         AND c.channel_id = d.channel_id
        WHERE NOT is_twin(d.status, coalesce(d.sent_at, d.updated_at), c.dedup_ttl_hours, clock_timestamp())
          AND NOT EXISTS (
              SELECT 1
              FROM events e
              WHERE e.delivery_id = d.delivery_id
                AND e.workspace_id = d.workspace_id
                AND e.ts >= _cutoff
                AND e.action <> 'checkpoint'
          )
        LIMIT p_limit
    ), held AS MATERIALIZED ( -- re-checked under the lock
        SELECT d.workspace_id, d.delivery_id
        FROM (SELECT * FROM old o ORDER BY o.workspace_id, o.delivery_id) AS o
        CROSS JOIN LATERAL (
            SELECT d.workspace_id, d.delivery_id
            FROM deliveries d
            WHERE d.workspace_id = o.workspace_id
              AND d.delivery_id = o.delivery_id
              AND is_final(d.status)
              AND d.updated_at < _cutoff
            FOR UPDATE SKIP LOCKED
        ) AS d
    ), gone AS (
        DELETE FROM deliveries d
        USING held h
        WHERE d.workspace_id = h.workspace_id
          AND d.delivery_id = h.delivery_id
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone),
           CASE
               WHEN (SELECT count(*) FROM gone) = p_limit
                   THEN p_after
               WHEN (SELECT count(*) FROM page) = p_limit THEN (
                   SELECT jsonb_build_object('created_at', p.created_at, 'message_id', p.message_id)
                   FROM page p
                   ORDER BY p.created_at DESC, p.message_id DESC
                   LIMIT 1
               )
           END
    INTO _gone, _page;

    IF _gone > 0 THEN
        INSERT INTO retention_marks AS f (what, until)
        VALUES ('deliveries', _cutoff)
        ON CONFLICT (what) DO UPDATE SET until = greatest(f.until, excluded.until);
    END IF;
    RETURN jsonb_build_object('gone', _gone, 'after', _page);
END $$;
