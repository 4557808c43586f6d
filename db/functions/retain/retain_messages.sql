-- retain_messages(keep, after, limit) -> {"gone", "renderings", "after"}
--
-- Of the messages that are older than `keep`: deletes those that have no delivery left and were not posted again since,
-- and of the others the renderings that have no delivery left. The walk is that of retain_deliveries.
--
-- Stays        all of it while events are strict (events_are_strict)
-- Changes      retention_marks
-- Locks        messages by key, SKIP LOCKED: the row is the mutex of its content, so it cannot be enqueued meanwhile,
--              and the statement after the lock sees earlier enqueues
CREATE OR REPLACE FUNCTION retain_messages(p_keep interval, p_after jsonb, p_limit int)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    _cutoff timestamptz := clock_timestamp() - p_keep;
    _after_at timestamptz := coalesce((p_after ->> 'created_at')::timestamptz, '-infinity');
    _after_id uuid := (p_after ->> 'message_id')::uuid;
    _workspaces uuid[];
    _messages uuid[];
    _page jsonb;
    _gone int;
    _renderings int;
BEGIN
    IF events_are_strict() THEN
        RETURN jsonb_build_object('gone', 0, 'renderings', 0, 'after', NULL);
    END IF;
    WITH page AS MATERIALIZED (
        SELECT m.workspace_id, m.message_id, m.created_at
        FROM messages m
        WHERE m.created_at < _cutoff
          AND m.created_at >= _after_at
          AND (m.created_at, m.message_id) > (_after_at, _after_id)
        ORDER BY m.created_at, m.message_id
        LIMIT p_limit
    ), held AS MATERIALIZED (
        SELECT m.workspace_id, m.message_id
        FROM (SELECT * FROM page p ORDER BY p.workspace_id, p.message_id) AS p
        CROSS JOIN LATERAL (
            SELECT m.workspace_id, m.message_id
            FROM messages m
            WHERE m.workspace_id = p.workspace_id
              AND m.message_id = p.message_id
            FOR UPDATE SKIP LOCKED
        ) AS m
    )
    SELECT array_agg(h.workspace_id), array_agg(h.message_id),
           CASE WHEN (SELECT count(*) FROM page) = p_limit THEN (
               SELECT jsonb_build_object('created_at', p.created_at, 'message_id', p.message_id)
               FROM page p
               ORDER BY p.created_at DESC, p.message_id DESC
               LIMIT 1
           ) END
    INTO _workspaces, _messages, _page
    FROM held h;

    WITH gone AS (
        DELETE FROM renderings r
        WHERE r.ctid = ANY (ARRAY( -- each by key, whatever the planner estimates
            SELECT s.place
            FROM unnest(_workspaces, _messages) AS k (workspace_id, message_id)
            CROSS JOIN LATERAL (
                SELECT s.ctid AS place, s.rendering_id
                FROM renderings s
                WHERE s.message_id = k.message_id
                  AND s.workspace_id = k.workspace_id
                  AND s.created_at < _cutoff
                ORDER BY s.message_id, s.plan_hash
            ) AS s
            CROSS JOIN LATERAL (
                SELECT count(*) AS deliveries
                FROM deliveries d
                WHERE d.message_id = k.message_id
                  AND d.workspace_id = k.workspace_id
                  AND d.rendering_id = s.rendering_id
            ) AS shown
            WHERE shown.deliveries = 0
        ))
        RETURNING 1
    )
    SELECT count(*) INTO _renderings FROM gone;
    WITH gone AS (
        DELETE FROM messages m
        WHERE m.ctid = ANY (ARRAY(
            SELECT s.place
            FROM unnest(_workspaces, _messages) AS k (workspace_id, message_id)
            CROSS JOIN LATERAL (
                SELECT s.ctid AS place
                FROM messages s
                WHERE s.workspace_id = k.workspace_id
                  AND s.message_id = k.message_id
                  AND s.last_seen_at < _cutoff
                OFFSET 0
            ) AS s
            LEFT JOIN LATERAL (
                SELECT 1 AS one
                FROM deliveries d
                WHERE d.message_id = k.message_id
                  AND d.workspace_id = k.workspace_id
                LIMIT 1
            ) AS shown ON true
            WHERE shown.one IS NULL
        ))
        RETURNING 1
    )
    SELECT count(*) INTO _gone FROM gone;

    IF _gone > 0 THEN
        INSERT INTO retention_marks AS f (what, until)
        VALUES ('messages', _cutoff)
        ON CONFLICT (what) DO UPDATE SET until = greatest(f.until, excluded.until);
    END IF;
    RETURN jsonb_build_object('gone', _gone, 'renderings', _renderings, 'after', _page);
END $$;
