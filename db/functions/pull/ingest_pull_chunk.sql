-- ingest_pull_chunk(workspace_id, source_id, endpoint_id, token, posts, refused, cursor, last, lease)
-- -> the verdict
--
-- A chunk of what a source returned, in one transaction: receipts, messages, deliveries and the cursor, or none of
-- them. A post whose source_ref has a receipt is skipped, so reading the same items again does no harm, and any failure
-- leaves the cursor where it was. A receipt that was released counts as none.
--
-- posts        as for enqueue_messages_and_deliveries, each with its source_ref, in the order in which channels show
--              them; or as for stage_post, with a request, where media is still to be fetched. A post that no channel
--              takes gets an event, keeps its receipt, and is not staged
-- refused      see register_pull_refusals; recorded once, redacted and shortened
-- cursor       see store_pull_cursor
-- Verdicts     taken              with the counters that the run was given; no_channel is there when it is not 0
--              missing_profiles   compile these and call again; nothing was written
--              stopped            source, endpoint or workspace no longer accept anything; nothing was written
--              stale              another holder has the lease; nothing was written
-- Appends      what enqueue appends, ingress_dedup_dropped for twins within the response, ingress_payload_rejected
-- Locks        pull_sources, messages, …: the order of all functions, then pull_receipts, pull_cursors and ingest_runs
CREATE OR REPLACE FUNCTION ingest_pull_chunk(
    p_workspace_id uuid,
    p_source_id text,
    p_endpoint_id uuid,
    p_token uuid,
    p_posts jsonb,
    p_refused jsonb,
    p_cursor jsonb,
    p_last boolean,
    p_lease interval,
    p_audit_deduped boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _run_id uuid;
    _posts jsonb;
    _staged int[];
    _refused jsonb;
    _passed int;
    _twins text[];
    _rows post[];
    _routes record;
    _answers post_answer[];
    _counters jsonb;
BEGIN
    SELECT s.run_id
    INTO _run_id
    FROM pull_sources s
    WHERE s.workspace_id = p_workspace_id
      AND s.source_id = p_source_id
      AND s.lease_token = p_token
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('verdict', 'stale');
    END IF;
    IF NOT EXISTS (
        SELECT 1
        FROM pull_sources s
        JOIN workspaces w USING (workspace_id)
        JOIN workspace_endpoints e USING (workspace_id, source_id)
        WHERE s.workspace_id = p_workspace_id
          AND s.source_id = p_source_id
          AND e.endpoint_id = p_endpoint_id
          AND s.enabled AND e.enabled AND w.status = 'active'
    ) THEN
        RETURN jsonb_build_object('verdict', 'stopped');
    END IF;

    -- No other transaction writes receipts of this source while its row is locked.
    WITH given AS MATERIALIZED (
        SELECT g.post, g.place, g.post ->> 'source_ref' AS source_ref,
               row_number() OVER (PARTITION BY g.post ->> 'source_ref' ORDER BY g.place) = 1
                   AND ( -- counted: one look-up by key each, whatever the planner estimates
                       SELECT count(*)
                       FROM pull_receipts r
                       WHERE r.workspace_id = p_workspace_id
                         AND r.source_id = p_source_id
                         AND r.source_ref = g.post ->> 'source_ref'
                         AND r.released_at IS NULL
                   ) = 0 AS is_new
        FROM jsonb_array_elements(p_posts) WITH ORDINALITY AS g (post, place)
    )
    SELECT coalesce(jsonb_agg(g.post || jsonb_build_object('run_id', _run_id) ORDER BY g.place)
                        FILTER (WHERE g.is_new), '[]'),
           coalesce(array_agg(g.source_ref ORDER BY g.place) FILTER (WHERE NOT g.is_new), '{}')
    INTO _posts, _twins
    FROM given g;

    _rows := parse_posts(_posts);
    _routes := route_posts(p_workspace_id, _rows);
    IF _routes.missing <> '{}' THEN
        RETURN jsonb_build_object('verdict', 'missing_profiles', 'missing_profiles', (
            SELECT jsonb_agg(DISTINCT p.profile)
            FROM jsonb_each(_routes.missing) AS m (place, profiles)
            CROSS JOIN LATERAL jsonb_array_elements(m.profiles) AS p (profile)
        ));
    END IF;
    _answers := enqueue_posts(p_workspace_id, complete_posts(_rows), _routes.routes, NULL, p_audit_deduped);
    IF _routes.nowhere IS NOT NULL THEN
        _answers := _answers || refuse_staging(p_workspace_id, _rows, _routes.nowhere);
    END IF;
    _staged := ARRAY(SELECT p.place FROM unnest(_rows) AS p EXCEPT SELECT a.place FROM unnest(_answers) AS a ORDER BY 1);

    INSERT INTO pull_receipts (workspace_id, source_id, source_ref, message_id, received_at)
    SELECT p_workspace_id, p_source_id, p.source_ref, a.message_id, clock_timestamp()
    FROM unnest(_rows) AS p
    LEFT JOIN unnest(_answers) AS a USING (place)
    ON CONFLICT (workspace_id, source_id, source_ref) DO UPDATE
    SET message_id = excluded.message_id,
        received_at = excluded.received_at,
        released_at = NULL;
    PERFORM stage_post(p_workspace_id, p_endpoint_id, NULL, _posts -> (s.place - 1))
    FROM unnest(_staged) AS s (place);
    SELECT r.refused, r.passed_over
    INTO _refused, _passed
    FROM register_pull_refusals(p_workspace_id, p_source_id, p_refused) AS r;
    PERFORM store_pull_cursor(p_workspace_id, p_source_id, _run_id, p_cursor, p_last);
    PERFORM record_pull_refusals(
        p_workspace_id, p_endpoint_id, p_source_id, _run_id, p_posts #> '{0,trace_id}', _twins, _refused);

    SELECT jsonb_build_object(
               'accepted', jsonb_array_length(_posts),
               'staged', cardinality(_staged),
               'dedup_dropped', cardinality(_twins),
               'payload_rejected', jsonb_array_length(_refused),
               'enqueued', coalesce(sum(a.enqueued), 0),
               'deduped', coalesce(sum(a.deduped), 0),
               'validation_failed', coalesce(sum(a.validation_failed), 0))
           || CASE WHEN bool_or(a.routed = 0)
                   THEN jsonb_build_object('no_channel', count(*) FILTER (WHERE a.routed = 0)) ELSE '{}' END
    INTO _counters
    FROM unnest(_answers) AS a;
    IF _passed > 0 THEN
        _counters := _counters || jsonb_build_object('passed_over', _passed);
    END IF;
    UPDATE pull_sources s
    SET lease_until = greatest(s.lease_until, clock_timestamp() + p_lease)
    WHERE s.workspace_id = p_workspace_id
      AND s.source_id = p_source_id;
    PERFORM count_run(p_workspace_id, _run_id, _counters, p_source_id);
    RETURN _counters || jsonb_build_object('verdict', 'taken');
END $$;
