-- fail_staged_post(workspace_id, post_id, lease_token, error, max_attempts, retry_after_ms) -> the verdict
--
-- The media of a staged post could not be fetched this time. It is retried after the wait of the retry policy, up to
-- max_attempts times; 0 gives up at once. Giving up writes an event, ends the run, and deletes the receipt, so that the
-- sender may send the same again; for a pulled post, see release_pull_receipt.
--
-- error        {"code", "message", …}
-- Verdicts     staged    to be retried
--              failed    given up
--              stale     the lease has passed on: nothing was changed but a stale_commit event
-- Changes      fetching -> staged | failed
-- Appends      media_failed, stale_commit
-- Locks        staged_posts, ingress_receipts by key, then as release_pull_receipt; no holder of a receipt or a source
--              waits for a staged post
CREATE OR REPLACE FUNCTION fail_staged_post(
    p_workspace_id uuid,
    p_post_id uuid,
    p_lease_token uuid,
    p_error jsonb,
    p_max_attempts int,
    p_retry_after_ms bigint DEFAULT NULL
)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _staged staged_posts := lock_staged_post(p_workspace_id, p_post_id, p_lease_token);
    _final boolean := _staged.attempt >= p_max_attempts;
BEGIN
    IF _staged.post_id IS NULL THEN
        RETURN 'stale';
    END IF;
    IF _staged.status <> 'fetching' THEN
        RETURN _staged.status;
    END IF;

    UPDATE staged_posts s
    SET status = CASE WHEN _final THEN 'failed' ELSE 'staged' END,
        lease_token = CASE WHEN _final THEN s.lease_token END,
        lease_until = NULL,
        receipt_id = CASE WHEN NOT _final THEN s.receipt_id END,
        next_attempt_at = clock_timestamp() + retry_delay(s.attempt, p_retry_after_ms),
        finished_at = CASE WHEN _final THEN clock_timestamp() END,
        last_error = bounded_error(p_error)
    WHERE s.workspace_id = p_workspace_id
      AND s.post_id = p_post_id;
    IF NOT _final THEN
        RETURN 'staged';
    END IF;

    DELETE FROM ingress_receipts r
    WHERE r.workspace_id = p_workspace_id
      AND r.receipt_id = _staged.receipt_id;
    INSERT INTO events (workspace_id, action, result, attempt, error, meta)
    VALUES (p_workspace_id, 'media_failed', 'error', _staged.attempt, p_error,
            staged_origin(_staged) || CASE
                WHEN _staged.source ->> 'kind' = 'pull' THEN jsonb_build_object('comes_again', release_pull_receipt(
                    p_workspace_id, _staged.source ->> 'source_id', _staged.request ->> 'source_ref'))
                ELSE '{}'
            END);
    PERFORM count_run(
        p_workspace_id, _staged.run_id,
        jsonb_strip_nulls(jsonb_build_object('media_failed', 1, 'reason', p_error -> 'code')),
        p_ends => true);
    RETURN 'failed';
END $$;
