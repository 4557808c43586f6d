-- admit_post(workspace_id, endpoint_id, post, payload_hash) -> the verdict on one push
--
-- The whole of an accepted push in one transaction: gate, receipt, run, message, deliveries. A request that fails
-- on the way leaves no receipt, so its repetition is accepted. A post that brings its request has media still to be
-- fetched: it is staged, and its run ends when that is done.
--
-- Verdicts     accepted            with the answer of enqueue_post and run_id
--              staged              with post_id and run_id
--              duplicate           seen before: by source_ref, or by payload_hash within the endpoint's window
--              rate_limited        with retry_after_ms
--              workspace_paused    nothing is taken in; try again later
--              workspace_disabled  nothing is taken in
--              missing_profiles    compile these and call again, past the gate; nothing else was written
-- Appends      ingress_rate_limited, ingress_dedup_dropped, and what enqueue appends
-- Raises       40001 when the receipt of an earlier request is being taken back; the same may be sent again
-- Locks        ingress_gates, ingress_receipts, messages, …: the order of all functions
CREATE OR REPLACE FUNCTION admit_post(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_post jsonb,
    p_payload_hash text,
    p_audit_deduped boolean DEFAULT false,
    p_past_gate boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _endpoint record;
    _missing jsonb;
    _wait interval;
    _run_id uuid := (p_post ->> 'run_id')::uuid;
    _source_ref text := p_post ->> 'source_ref';
    _first record;
    _receipt_id uuid;
    _answer jsonb;
BEGIN
    SELECT e.ingress_rps, e.hash_drop_window_sec, w.status
    INTO _endpoint
    FROM workspace_endpoints e
    JOIN workspaces w USING (workspace_id)
    WHERE e.workspace_id = p_workspace_id
      AND e.endpoint_id = p_endpoint_id;
    IF _endpoint.status <> 'active' THEN
        RETURN jsonb_build_object('verdict', 'workspace_' || _endpoint.status);
    END IF;

    IF p_past_gate THEN
        PERFORM 1  -- paid already, but held in the same order as by those who pay now
        FROM ingress_gates g
        WHERE g.workspace_id = p_workspace_id
          AND g.endpoint_id = p_endpoint_id
        FOR UPDATE;
    ELSE
        _wait := pass_gate(p_workspace_id, p_endpoint_id, _endpoint.ingress_rps);
    END IF;
    IF _wait IS NOT NULL THEN
        PERFORM refuse_ingress(p_workspace_id, p_endpoint_id, 'push', 'ingress_rate_limited', 'rate_limited',
                               jsonb_build_object('code', 'rate_limited'), p_post ->> 'trace_id');
        RETURN jsonb_build_object('verdict', 'rate_limited',
                                  'retry_after_ms', ceil(extract(epoch FROM _wait) * 1000));
    END IF;

    IF NOT p_post ? 'request' THEN
        _missing := missing_profiles(p_workspace_id, p_post);
    END IF;
    IF _missing <> '[]' THEN
        RETURN jsonb_build_object('verdict', 'missing_profiles', 'missing_profiles', _missing);
    END IF;

    -- Of concurrent twins without a source_ref one goes first; with one, the unique index lines them up.
    IF _source_ref IS NULL THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(p_endpoint_id || p_payload_hash, 0));
        SELECT r.receipt_id, r.run_id
        INTO _first
        FROM ingress_receipts r
        WHERE r.workspace_id = p_workspace_id
          AND r.endpoint_id = p_endpoint_id
          AND r.payload_hash = p_payload_hash
          AND r.received_at > clock_timestamp() - make_interval(secs => _endpoint.hash_drop_window_sec)
        LIMIT 1;
    END IF;
    IF _first IS NULL THEN
        INSERT INTO ingress_receipts (workspace_id, endpoint_id, endpoint_kind, source_ref, payload_hash, run_id,
                                      received_at, expires_at)
        VALUES (p_workspace_id, p_endpoint_id, 'webhook_push', _source_ref, p_payload_hash, _run_id,
                clock_timestamp(), clock_timestamp() + interval '3 days')
        ON CONFLICT (workspace_id, endpoint_id, source_ref) WHERE source_ref IS NOT NULL DO NOTHING
        RETURNING receipt_id
        INTO _receipt_id;
        IF NOT FOUND THEN
            SELECT r.receipt_id, r.run_id
            INTO _first
            FROM ingress_receipts r
            WHERE r.workspace_id = p_workspace_id
              AND r.endpoint_id = p_endpoint_id
              AND r.source_ref = _source_ref;
            IF NOT FOUND THEN -- the post it was for has failed for good in this very moment
                RAISE EXCEPTION 'a receipt was taken back' USING ERRCODE = '40001';
            END IF;
        END IF;
    END IF;
    IF _first IS NOT NULL THEN
        PERFORM refuse_ingress(p_workspace_id, p_endpoint_id, 'push', 'ingress_dedup_dropped', 'dedup_dropped',
                               jsonb_strip_nulls(jsonb_build_object(
                                   'code', 'dedup_dropped', 'source_ref', _source_ref)),
                               p_post ->> 'trace_id');
        RETURN jsonb_build_object('verdict', 'duplicate', 'of', CASE WHEN _source_ref IS NULL
                                  THEN 'payload' ELSE 'source_ref' END, 'first_run_id', _first.run_id);
    END IF;

    INSERT INTO ingest_runs (workspace_id, run_id, kind, endpoint_id, trace_id)
    VALUES (p_workspace_id, _run_id, 'push', p_endpoint_id, p_post ->> 'trace_id');
    IF p_post ? 'request' THEN
        UPDATE ingest_runs
        SET stats_json = '{"accepted": 1, "staged": 1}'
        WHERE workspace_id = p_workspace_id
          AND run_id = _run_id;
        RETURN jsonb_build_object('verdict', 'staged', 'run_id', _run_id, 'post_id',
                                  stage_post(p_workspace_id, p_endpoint_id, _receipt_id, p_post));
    END IF;
    _answer := enqueue_post(p_workspace_id, p_post, NULL, p_audit_deduped);
    UPDATE ingest_runs
    SET finished_at = clock_timestamp(),
        stats_json = (_answer - '{message_id,new}'::text[]) || '{"accepted": 1}'
    WHERE workspace_id = p_workspace_id
      AND run_id = _run_id;
    RETURN _answer || jsonb_build_object('verdict', 'accepted', 'run_id', _run_id);
END $$;
