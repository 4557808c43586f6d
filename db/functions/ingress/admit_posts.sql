-- admit_posts(workspace_id, endpoint_id, posts, payload_hashes, past_gate, audit_deduped, look_up)
-- -> a verdict per push, in order
--
-- All steps for accepted pushes in one transaction: gate, receipts, messages, deliveries, runs. Requests that fail on
-- the way leave no receipt, so the sender may repeat them; nor do those that reach no channel, whose receipts are not
-- even taken: a correction in the same batch is accepted. A post that brings its request has media still to be fetched:
-- it is staged, unless no channel takes it, and its run ends when that is done.
--
-- Verdicts     accepted            with the answer of enqueue_messages_and_deliveries and run_id
--              refused             with the same: no channel takes the post, or none of those that do can show it
--              staged              with post_id and run_id
--              duplicate           seen before: by source_ref, or by payload_hash within the endpoint's window; see
--                                  register_requests
--              rate_limited        with retry_after_ms
--              workspace_paused    nothing is accepted; try again later
--              workspace_disabled  nothing is accepted
--              endpoint_disabled   or deleted: its secret is no longer valid, even if the caller has it cached; nothing
--                                  is accepted
--              missing_profiles    compile these and call again, past the gate; nothing else was written of it
-- look_up      to look up contents before routing: costs time, and reports every rendering that a post lacks
-- Raises       serialization_failure as enqueue_seen_posts does, unless look_up is set; then only when another
--              transaction stores the same content at the same time
-- Appends      ingress_rate_limited, ingress_dedup_dropped, and what enqueue appends
-- Locks        ingress_gates, ingress_receipts, messages, …: the order of all functions
CREATE OR REPLACE FUNCTION admit_posts(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_posts jsonb,
    p_payload_hashes text[],
    p_past_gate boolean[],
    p_audit_deduped boolean DEFAULT false,
    p_look_up boolean DEFAULT false
)
RETURNS json
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
    _without_receipt int[];
    _duplicates jsonb;
    _given_back uuid[];
    _answers post_answer[];
    _told json;
BEGIN
    SELECT e.ingress_rps, e.hash_drop_window_sec,
           CASE WHEN NOT e.enabled THEN 'endpoint_disabled'
                WHEN w.status <> 'active' THEN 'workspace_' || w.status END AS closed
    INTO _endpoint
    FROM workspace_endpoints e
    JOIN workspaces w USING (workspace_id)
    WHERE e.workspace_id = p_workspace_id
      AND e.endpoint_id = p_endpoint_id;
    IF NOT FOUND OR _endpoint.closed IS NOT NULL THEN
        RETURN (SELECT json_agg(jsonb_build_object('verdict', coalesce(_endpoint.closed, 'endpoint_disabled')))
                FROM jsonb_array_elements(p_posts));
    END IF;

    SELECT g.chosen, g.verdicts
    INTO _posts, _verdicts
    FROM rate_limit_posts(p_workspace_id, p_endpoint_id, _endpoint.ingress_rps, parse_posts(p_posts), p_past_gate) AS g;

    _routes := route_posts(p_workspace_id, _posts, p_look_up);
    IF _routes.missing <> '{}' THEN
        _posts := ARRAY(SELECT p FROM unnest(_posts) AS p WHERE NOT _routes.missing ? p.place::text);
        SELECT _verdicts || jsonb_object_agg(m.place, jsonb_build_object(
                   'verdict', 'missing_profiles', 'missing_profiles', m.profiles))
        INTO _verdicts
        FROM jsonb_each(_routes.missing) AS m (place, profiles);
    END IF;

    _without_receipt := coalesce(_routes.nowhere, '{}');
    IF _routes.some_fail THEN
        _without_receipt := _without_receipt || unshowable_posts(p_workspace_id, _posts, _routes.routes);
    END IF;
    _duplicates := register_requests(
        p_workspace_id, p_endpoint_id, _endpoint.hash_drop_window_sec,
        CASE WHEN _without_receipt = '{}' THEN _posts
             ELSE ARRAY(SELECT p FROM unnest(_posts) AS p WHERE p.place <> ALL (_without_receipt)) END,
        p_payload_hashes);
    IF _duplicates <> '{}' THEN
        _posts := ARRAY(SELECT p FROM unnest(_posts) AS p WHERE NOT _duplicates ? p.place::text);
        _verdicts := _verdicts || _duplicates;
    END IF;

    _answers := enqueue_posts(
        p_workspace_id, CASE WHEN _some_staged THEN complete_posts(_posts) ELSE _posts END,
        _routes.routes, NULL, p_audit_deduped);
    IF _some_staged AND _routes.nowhere IS NOT NULL THEN
        _answers := _answers || refuse_staging(p_workspace_id, _posts, _routes.nowhere);
    END IF;

    WITH taken AS MATERIALIZED (
        SELECT p.place, p.run_id, p.trace_id, p.source_ref, a.place IS NULL AS is_staged,
               a.enqueued + a.deduped = 0 AS is_refused, a.message_id, a.is_new, a.routed, a.enqueued, a.deduped, a.validation_failed, a.first_tags
        FROM unnest(_posts) AS p
        LEFT JOIN unnest(_answers) AS a USING (place)
    ), runs AS (
        INSERT INTO ingest_runs (workspace_id, run_id, kind, endpoint_id, trace_id, message_id, source_ref, finished_at,
                                 stats_json)
        SELECT p_workspace_id, t.run_id, 'push', p_endpoint_id, t.trace_id, t.message_id,
               CASE WHEN t.source_ref IS NOT NULL THEN quoted(t.source_ref, 256) END,
               CASE WHEN NOT t.is_staged THEN clock_timestamp() END,
               CASE WHEN t.is_staged THEN '{"accepted": 1, "staged": 1}'
               ELSE jsonb_build_object(CASE WHEN t.is_refused THEN 'refused' ELSE 'accepted' END, 1, 'routed', t.routed,
                                       'enqueued', t.enqueued, 'deduped', t.deduped,
                                       'validation_failed', t.validation_failed)
               END
        FROM taken t
    )
    SELECT '[' || string_agg(v.verdict, ',' ORDER BY v.place) || ']',
           array_agg(v.run_id) FILTER (WHERE v.run_id IS NOT NULL)
    INTO _told, _given_back
    FROM (
        SELECT t.place, CASE WHEN t.is_refused THEN t.run_id END AS run_id, CASE
                   WHEN NOT t.is_staged THEN format( -- half the cost of building it as jsonb
                       '{"verdict": "%s", "run_id": "%s", "message_id": %s, "new": %s, "routed": %s, '
                       '"enqueued": %s, "deduped": %s, "validation_failed": %s%s}',
                       CASE WHEN t.is_refused THEN 'refused' ELSE 'accepted' END, t.run_id,
                       coalesce('"' || t.message_id || '"', 'null'),
                       CASE WHEN t.is_new THEN 'true' ELSE 'false' END, t.routed, t.enqueued, t.deduped, t.validation_failed,
                       ', "first_tags": ' || to_json(t.first_tags))
                   ELSE jsonb_build_object(
                       'verdict', 'staged', 'run_id', t.run_id,
                       'post_id', stage_post(p_workspace_id, p_endpoint_id, t.run_id, p_posts -> (t.place - 1)))::text
               END AS verdict
        FROM taken t
        UNION ALL
        SELECT v.place::int, NULL, v.verdict::text
        FROM jsonb_each(_verdicts) AS v (place, verdict)
    ) AS v;
    IF _given_back IS NOT NULL THEN
        DELETE FROM ingress_receipts r
        WHERE r.workspace_id = p_workspace_id
          AND r.receipt_id = ANY (_given_back);
    END IF;
    RETURN _told;
END $$;
