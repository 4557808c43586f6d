-- take_receipts(workspace_id, endpoint_id, window, posts, payload_hashes) -> which of the posts are new
--
-- A post with a source_ref is new once per endpoint; one without is new when no request of the same payload came within
-- the window, in seconds. Of twins among the posts the first is new. A receipt lives for three days, or for a window that is
-- longer.
--
-- places, receipt_ids   of the new ones
-- verdicts              {place: {"verdict": "duplicate", "of", "first_run_id"}} of the others
-- Appends      ingress_dedup_dropped
-- Locks        ingress_receipts by source_ref; of concurrent twins without one, an advisory lock makes one go first
CREATE OR REPLACE FUNCTION take_receipts(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_window int,
    p_posts post[],
    p_payload_hashes text[],
    OUT places int[],
    OUT receipt_ids uuid[],
    OUT verdicts jsonb
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _dropped int;
    _first_dropped post;
    _drawn text := new_id();
    _first_id bigint := id_start(_drawn);
    _ids text := left(_drawn, 24);
BEGIN
    PERFORM pg_advisory_xact_lock(l.lock) -- in one order
    FROM (
        SELECT DISTINCT hashtextextended(p_endpoint_id || p_payload_hashes[p.place], 0) AS lock
        FROM unnest(p_posts) AS p
        WHERE p.source_ref IS NULL
        ORDER BY lock
    ) AS l;

    WITH wanted AS MATERIALIZED (
        SELECT p.place, p.source_ref, p.run_id, p_payload_hashes[p.place] AS payload_hash, seen.run_id AS seen_run_id,
               first_value(p.run_id) OVER (
                   PARTITION BY p.source_ref, CASE WHEN p.source_ref IS NULL THEN p_payload_hashes[p.place] END
                   ORDER BY p.place
               ) AS first_run_id
        FROM unnest(p_posts) AS p
        LEFT JOIN LATERAL (
            SELECT r.run_id
            FROM (
                -- Not by workspace: a plan that was made while the table was empty would take the primary key for as
                -- good, and read all receipts for each.
                SELECT r.workspace_id, r.run_id
                FROM ingress_receipts r
                WHERE r.endpoint_id = p_endpoint_id
                  AND r.payload_hash = p_payload_hashes[p.place]
                  AND r.received_at > clock_timestamp() - make_interval(secs => p_window)
                OFFSET 0
            ) AS r
            WHERE p.source_ref IS NULL
              AND r.workspace_id = p_workspace_id
            LIMIT 1
        ) AS seen ON true
    ), taken AS (
        INSERT INTO ingress_receipts AS r (workspace_id, receipt_id, endpoint_id, endpoint_kind, source_ref,
                                           payload_hash, run_id, received_at, expires_at)
        SELECT p_workspace_id, id_in(_ids, _first_id + w.place), p_endpoint_id, 'webhook_push', w.source_ref,
               w.payload_hash, w.run_id, clock_timestamp(),
               clock_timestamp() + greatest(interval '3 days', make_interval(secs => p_window))
        FROM wanted w
        WHERE w.seen_run_id IS NULL
          AND w.first_run_id = w.run_id
        ORDER BY w.source_ref
        ON CONFLICT (workspace_id, endpoint_id, source_ref) WHERE source_ref IS NOT NULL DO UPDATE
        SET run_id = r.run_id -- nothing: it waits for whoever came first, and tells who that was
        RETURNING r.source_ref, r.run_id, r.receipt_id
    ), judged AS (
        SELECT w.place, w.source_ref, t.receipt_id,
               CASE WHEN w.source_ref IS NULL THEN coalesce(w.seen_run_id, w.first_run_id)
                    ELSE f.run_id END AS first_run_id
        FROM wanted w
        LEFT JOIN taken t ON t.run_id = w.run_id
        LEFT JOIN taken f ON f.source_ref = w.source_ref
    )
    SELECT array_agg(j.place) FILTER (WHERE j.receipt_id IS NOT NULL),
           array_agg(j.receipt_id) FILTER (WHERE j.receipt_id IS NOT NULL),
           coalesce(jsonb_object_agg(j.place, jsonb_build_object(
               'verdict', 'duplicate', 'of', CASE WHEN j.source_ref IS NULL THEN 'payload' ELSE 'source_ref' END,
               'first_run_id', j.first_run_id)) FILTER (WHERE j.receipt_id IS NULL), '{}'),
           count(*) FILTER (WHERE j.receipt_id IS NULL)
    INTO places, receipt_ids, verdicts, _dropped
    FROM judged j;

    IF _dropped > 0 THEN
        SELECT p.* INTO _first_dropped
        FROM unnest(p_posts) AS p
        WHERE verdicts ? p.place::text
        ORDER BY p.place
        LIMIT 1;
        PERFORM refuse_ingress(p_workspace_id, p_endpoint_id, 'push', 'ingress_dedup_dropped', 'dedup_dropped',
                               jsonb_strip_nulls(jsonb_build_object(
                                   'code', 'dedup_dropped', 'source_ref', _first_dropped.source_ref)),
                               _first_dropped.trace_id, _dropped);
    END IF;
END $$;
