-- finish_staged_post(workspace_id, post_id, lease_token, post, audit_deduped, lost) -> the verdict on a staged post
--
-- Its media is stored: puts it into the queue like any other post, and ends its run, in one transaction. A repeated
-- call, after a lost response, changes nothing.
--
-- post         as for enqueue_messages_and_deliveries; run and trace are those of the staged post
-- lost         [{"code", "field", …}]: media that could not be fetched, and that the post goes without
-- Verdicts     enqueued            with the answer of enqueue_messages_and_deliveries
--              failed              no channel takes it, or none of those that do can show it; the receipt of a push is
--                                  deleted
--              missing_profiles    compile these and call again; nothing was written
--              stale               the lease has passed on: nothing was changed but a stale_commit event
-- Changes      fetching -> enqueued | failed
-- Appends      what enqueue appends, media_failed for each that is lost, stale_commit
-- Locks        staged_posts, messages, …: the order of all functions; then as fail_staged_post
CREATE OR REPLACE FUNCTION finish_staged_post(
    p_workspace_id uuid,
    p_post_id uuid,
    p_lease_token uuid,
    p_post jsonb,
    p_audit_deduped boolean DEFAULT false,
    p_lost jsonb DEFAULT '[]'
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _staged staged_posts := lock_staged_post(p_workspace_id, p_post_id, p_lease_token);
    _answer jsonb;
    _refusal text;
BEGIN
    IF _staged.post_id IS NULL THEN
        RETURN jsonb_build_object('verdict', 'stale');
    END IF;
    IF _staged.status <> 'fetching' THEN
        RETURN jsonb_build_object('verdict', _staged.status, 'message_id', _staged.message_id);
    END IF;

    _answer := enqueue_messages_and_deliveries(
        p_workspace_id,
        NULL, -- its source names both, and its endpoint may be deleted
        NULL,
        p_post || jsonb_build_object('run_id', _staged.run_id, 'trace_id', _staged.trace_id,
                                     'traceparent', _staged.traceparent, 'source', _staged.source, 'post_id', p_post_id),
        NULL,
        p_audit_deduped
    );
    IF _answer ? 'missing_profiles' THEN
        RETURN _answer || jsonb_build_object('verdict', 'missing_profiles');
    END IF;
    _refusal := CASE
        WHEN (_answer ->> 'routed')::int = 0 THEN 'no_channel'
        WHEN (_answer ->> 'enqueued')::int + (_answer ->> 'deduped')::int = 0 THEN 'validation_failed'
    END;
    UPDATE staged_posts s
    SET status = CASE WHEN _refusal IS NULL THEN 'enqueued' ELSE 'failed' END,
        message_id = (_answer ->> 'message_id')::uuid,
        receipt_id = CASE WHEN _refusal IS NULL THEN s.receipt_id END,
        lease_until = NULL,
        last_error = CASE WHEN _refusal IS NOT NULL THEN jsonb_build_object('code', _refusal) END,
        finished_at = clock_timestamp()
    WHERE s.workspace_id = p_workspace_id
      AND s.post_id = p_post_id;
    INSERT INTO events (workspace_id, action, result, attempt, error, meta)
    SELECT p_workspace_id, 'media_failed', 'error', _staged.attempt, l.error,
           staged_origin(_staged) || jsonb_build_object('message_id', _answer -> 'message_id')
    FROM jsonb_array_elements(p_lost) AS l (error);
    PERFORM count_run(p_workspace_id, _staged.run_id, _answer - '{message_id,new,first_tags}'::text[] || CASE
        WHEN p_lost = '[]' THEN '{}'
        ELSE jsonb_build_object('media_failed', jsonb_array_length(p_lost))
    END || CASE
        WHEN NOT _answer ? 'first_tags' OR _staged.source ->> 'kind' = 'pull' THEN '{}'
        ELSE jsonb_build_object('first_tags', quoted_all(_answer -> 'first_tags'),
                                'tags', quoted_all(coalesce(p_post -> 'tags', '[]')))
    END || CASE WHEN _refusal IS NULL THEN '{}' ELSE jsonb_build_object('reason', _refusal) END,
    p_ends => true);
    IF _refusal IS NOT NULL THEN
        DELETE FROM ingress_receipts r
        WHERE r.workspace_id = p_workspace_id
          AND r.receipt_id = _staged.receipt_id;
    END IF;
    RETURN _answer || jsonb_build_object('verdict', CASE WHEN _refusal IS NULL THEN 'enqueued' ELSE 'failed' END);
END $$;
