-- register_requests(workspace_id, endpoint_id, window, posts, payload_hashes)
-- -> {place: verdict} of the posts that are duplicates
--
-- Stores a receipt for each new post. A post with a source_ref is new once per endpoint. A post without one is new when
-- no request with the same payload came within the window (in seconds), and always when there is no window. Of equal
-- posts in one call the first is new. So is a correction: another payload with the source_ref of a post that was
-- cancelled. A receipt has the id of its run. It expires after three days, or after the window if that is longer.
--
-- verdict      {"verdict": "duplicate", "of", "first_run_id", "post_id"}; post_id when the first post was staged
-- Appends      ingress_dedup_dropped
-- Locks        ingress_receipts by source_ref; an advisory lock for concurrent posts with the same payload and no
--              source_ref
CREATE OR REPLACE FUNCTION register_requests(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_window int,
    p_posts post[],
    p_payload_hashes text[]
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _taken uuid[];
    _dropped record;
BEGIN
    PERFORM pg_advisory_xact_lock(l.lock) -- in one order
    FROM (
        SELECT DISTINCT hashtextextended(p_endpoint_id || p_payload_hashes[p.place], 0) AS lock
        FROM unnest(p_posts) AS p
        WHERE p.source_ref IS NULL
        ORDER BY lock
    ) AS l;

    WITH taken AS (
        INSERT INTO ingress_receipts AS r (workspace_id, receipt_id, endpoint_id, endpoint_kind, source_ref, payload_hash,
                                           run_id, received_at, expires_at)
        SELECT p_workspace_id, p.run_id, p_endpoint_id, 'webhook_push', p.source_ref, p.payload_hash, p.run_id,
               clock_timestamp(), clock_timestamp() + greatest(interval '3 days', make_interval(secs => p_window))
        FROM (
            SELECT DISTINCT ON (p.source_ref, k.told_apart_by) p.source_ref, p.run_id, k.payload_hash
            FROM unnest(p_posts) AS p
            CROSS JOIN LATERAL (
                SELECT p_payload_hashes[p.place] AS payload_hash,
                       CASE WHEN p.source_ref IS NOT NULL THEN NULL
                            WHEN p_window > 0 THEN p_payload_hashes[p.place]
                            ELSE p.place::text END AS told_apart_by
            ) AS k
            ORDER BY p.source_ref, k.told_apart_by, p.place
        ) AS p
        WHERE p.source_ref IS NOT NULL
           OR NOT EXISTS (
               SELECT 1
               FROM (
                   -- Without workspace_id: a plan made while the table was empty would take the primary key for as
                   -- good, and read all receipts for each.
                   SELECT r.workspace_id
                   FROM ingress_receipts r
                   WHERE r.endpoint_id = p_endpoint_id
                     AND r.payload_hash = p.payload_hash
                     AND r.received_at > clock_timestamp() - make_interval(secs => p_window)
                   OFFSET 0
               ) AS r
               WHERE r.workspace_id = p_workspace_id
           )
        ON CONFLICT (workspace_id, endpoint_id, source_ref) WHERE source_ref IS NOT NULL DO UPDATE
        SET receipt_id = excluded.receipt_id, -- else it only waits for the first one, whose receipt stays
            payload_hash = excluded.payload_hash,
            run_id = excluded.run_id,
            received_at = excluded.received_at,
            expires_at = excluded.expires_at,
            cancelled_at = NULL
        WHERE r.cancelled_at IS NOT NULL
          AND r.payload_hash <> excluded.payload_hash
        RETURNING r.run_id
    )
    SELECT coalesce(array_agg(t.run_id), '{}') INTO _taken FROM taken t;
    IF cardinality(_taken) = cardinality(p_posts) THEN
        RETURN '{}';
    END IF;

    -- Each look-up is fenced and by the first column of its index, for the same reason.
    SELECT jsonb_object_agg(d.place, jsonb_strip_nulls(jsonb_build_object(
               'verdict', 'duplicate', 'of', CASE WHEN d.source_ref IS NULL THEN 'payload' ELSE 'source_ref' END,
               'first_run_id', d.first_run_id, 'post_id', (
                   SELECT s.post_id
                   FROM (SELECT s.workspace_id, s.post_id FROM staged_posts s WHERE s.run_id = d.first_run_id OFFSET 0) AS s
                   WHERE s.workspace_id = p_workspace_id
                   LIMIT 1
               )))) AS verdicts,
           count(*)::int AS count,
           (array_agg(d.source_ref ORDER BY d.place))[1] AS source_ref,
           (array_agg(d.trace_id ORDER BY d.place))[1] AS trace_id
    INTO _dropped
    FROM (
        SELECT p.place, p.source_ref, p.trace_id, f.run_id AS first_run_id
        FROM unnest(p_posts) AS p
        LEFT JOIN LATERAL (
            SELECT r.run_id
            FROM (
                SELECT r.workspace_id, r.endpoint_id, r.run_id
                FROM ingress_receipts r
                WHERE r.source_ref = p.source_ref
                OFFSET 0
            ) AS r
            WHERE r.workspace_id = p_workspace_id
              AND r.endpoint_id = p_endpoint_id
            UNION ALL
            SELECT r.run_id
            FROM (
                SELECT r.workspace_id, r.run_id
                FROM ingress_receipts r
                WHERE p.source_ref IS NULL
                  AND r.endpoint_id = p_endpoint_id
                  AND r.payload_hash = p_payload_hashes[p.place]
                  AND r.received_at > clock_timestamp() - make_interval(secs => p_window)
                OFFSET 0
            ) AS r
            WHERE r.workspace_id = p_workspace_id
            LIMIT 1
        ) AS f ON true
        WHERE p.run_id <> ALL (_taken)
    ) AS d;
    PERFORM refuse_ingress(p_workspace_id, p_endpoint_id, 'push', 'ingress_dedup_dropped', 'dedup_dropped',
                           jsonb_strip_nulls(jsonb_build_object(
                               'code', 'dedup_dropped', 'source_ref', quoted(_dropped.source_ref, 256))),
                           _dropped.trace_id, _dropped.count);
    RETURN _dropped.verdicts;
END $$;
