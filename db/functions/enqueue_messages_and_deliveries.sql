-- enqueue_messages_and_deliveries(workspace_id, endpoint_id, kind, post, now) -> what became of the post
--
-- Stores a normalised, compiled post once and puts one delivery per routed channel into the queue, in one
-- set-based step. Channels that have the content already, sent within their TTL or still in flight, are passed
-- over with an event.
--
-- post         {"content_hash", "hash_version", "payload", "tags", "routing", "source", "source_ref",
--              "scheduled_for", "run_id", "trace_id", "traceparent", "batch_id", "max_attempts",
--              "renderings": [{"profile_hash", "plan_hash", "rendered_text", "plan", "calls",
--                              "template_version", "problems"}]}
-- Returns      {"message_id", "new", "enqueued", "deduped", "validation_failed"}, or {"missing_profiles": […]}
--              with nothing written when a routed channel's profile has no rendering
-- Raises       AP008 when a channel's profile changed while the content was waited for; compile again
-- Appends      enqueue | validation_failed per delivery, dedup_suppressed per channel passed over,
--              message_tag_mismatch
-- Locks        messages (the row is the mutex of its content), then deliveries and their trigger's tables
--
-- READ COMMITTED is part of the contract; see enqueue_post.
CREATE OR REPLACE FUNCTION enqueue_messages_and_deliveries(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_kind text,
    p_post jsonb,
    p_now timestamptz DEFAULT NULL,
    p_audit_deduped boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _missing jsonb := missing_profiles(p_workspace_id, p_post);
BEGIN
    IF _missing <> '[]' THEN
        RETURN jsonb_build_object('missing_profiles', _missing);
    END IF;
    RETURN enqueue_post(p_workspace_id, p_post, p_now, p_audit_deduped);
END $$;
