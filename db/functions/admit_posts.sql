-- admit_posts(workspace_id, endpoint_id, posts, payload_hashes, past_gate) -> a verdict per push, in order
--
-- The whole of accepted pushes in one transaction: gate, receipts, messages, deliveries, runs. Requests that fail on
-- the way leave no receipt, so their repetition is accepted. A post that brings its request has media still to be
-- fetched: it is staged, and its run ends when that is done.
--
-- Verdicts     accepted            with the answer of enqueue_messages_and_deliveries and run_id
--              staged              with post_id and run_id
--              duplicate           seen before: by source_ref, or by payload_hash within the endpoint's window
--              rate_limited        with retry_after_ms
--              workspace_paused    nothing is taken in; try again later
--              workspace_disabled  nothing is taken in
--              endpoint_disabled   its secret is good no more, whatever the caller remembers; nothing is taken in
--              missing_profiles    compile these and call again, past the gate; nothing else was written of it
-- Appends      ingress_rate_limited, ingress_dedup_dropped, and what enqueue appends
-- Locks        ingress_gates, ingress_receipts, messages, …: the order of all functions
CREATE OR REPLACE FUNCTION admit_posts(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_posts jsonb,
    p_payload_hashes text[],
    p_past_gate boolean[],
    p_audit_deduped boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    _endpoint record;
    _posts post[];
    _some_staged boolean := p_posts @? '$[*].request';
    _verdicts jsonb;
    _routes record;
    _receipts record;
    _answers jsonb;
BEGIN
    SELECT e.ingress_rps, e.hash_drop_window_sec,
           CASE WHEN NOT e.enabled THEN 'endpoint_disabled'
                WHEN w.status <> 'active' THEN 'workspace_' || w.status END AS closed
    INTO _endpoint
    FROM workspace_endpoints e
    JOIN workspaces w USING (workspace_id)
    WHERE e.workspace_id = p_workspace_id
      AND e.endpoint_id = p_endpoint_id;
    IF _endpoint.closed IS NOT NULL THEN
        RETURN (SELECT jsonb_agg(jsonb_build_object('verdict', _endpoint.closed))
                FROM jsonb_array_elements(p_posts));
    END IF;

    SELECT g.chosen, g.verdicts
    INTO _posts, _verdicts
    FROM pass_posts(p_workspace_id, p_endpoint_id, _endpoint.ingress_rps, posts_in(p_posts), p_past_gate) AS g;

    _routes := route_posts(p_workspace_id, CASE WHEN _some_staged THEN complete_posts(_posts) ELSE _posts END);
    IF _routes.missing <> '{}' THEN
        _posts := ARRAY(SELECT p FROM unnest(_posts) AS p WHERE NOT _routes.missing ? p.place::text);
        SELECT _verdicts || jsonb_object_agg(m.place, jsonb_build_object(
                   'verdict', 'missing_profiles', 'missing_profiles', m.profiles))
        INTO _verdicts
        FROM jsonb_each(_routes.missing) AS m (place, profiles);
    END IF;

    _receipts := take_receipts(
        p_workspace_id, p_endpoint_id, _endpoint.hash_drop_window_sec, _posts, p_payload_hashes);
    IF _receipts.verdicts <> '{}' THEN
        _posts := ARRAY(SELECT p FROM unnest(_posts) AS p WHERE NOT _receipts.verdicts ? p.place::text);
        _verdicts := _verdicts || _receipts.verdicts;
    END IF;

    _answers := enqueue_posts(
        p_workspace_id, CASE WHEN _some_staged THEN complete_posts(_posts) ELSE _posts END,
        _routes.routes, NULL, p_audit_deduped);

    INSERT INTO ingest_runs (workspace_id, run_id, kind, endpoint_id, trace_id, finished_at, stats_json)
    SELECT p_workspace_id, p.run_id, 'push', p_endpoint_id, p.trace_id,
           CASE WHEN a.answer IS NOT NULL THEN clock_timestamp() END,
           coalesce((a.answer - '{message_id,new}'::text[]) || '{"accepted": 1}', '{"accepted": 1, "staged": 1}')
    FROM unnest(_posts) AS p
    CROSS JOIN LATERAL (SELECT _answers -> p.place::text AS answer OFFSET 0) AS a;

    RETURN (
        SELECT jsonb_agg(coalesce(
            _verdicts -> g.place::text,
            CASE WHEN a.answer IS NOT NULL THEN a.answer || jsonb_build_object('verdict', 'accepted', 'run_id', p.run_id)
            ELSE jsonb_build_object(
                'verdict', 'staged', 'run_id', p.run_id,
                'post_id', stage_post(p_workspace_id, p_endpoint_id, r.receipt_id, p_posts -> (g.place - 1)))
            END
        ) ORDER BY g.place)
        FROM generate_series(1, jsonb_array_length(p_posts)) AS g (place)
        LEFT JOIN unnest(_posts) AS p USING (place)
        LEFT JOIN unnest(_receipts.places, _receipts.receipt_ids) AS r (place, receipt_id) USING (place)
        CROSS JOIN LATERAL (SELECT _answers -> g.place::text AS answer OFFSET 0) AS a
    );
END $$;
