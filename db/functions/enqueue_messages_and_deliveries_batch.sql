-- enqueue_messages_and_deliveries_batch(workspace_id, endpoint_id, kind, posts, now) -> one answer per post, in order
--
-- Stores normalised, compiled posts once each and puts one delivery per routed channel into the queue, set-based.
-- Channels that have the content already, sent within their TTL or still in flight, are passed over with an event; so
-- are twins inside the batch, by the one before them. Contents are locked in one order whatever the order given, so
-- concurrent batches cannot deadlock.
--
-- post         {"content_hash", "hash_version", "payload", "tags", "routing", "source", "source_ref",
--              "scheduled_for", "run_id", "trace_id", "traceparent", "batch_id", "max_attempts",
--              "renderings": [{"profile_hash", "plan_hash", "rendered_text", "plan", "calls",
--                              "template_version", "problems"}]}
-- answer       {"message_id", "new", "routed", "enqueued", "deduped", "validation_failed"}, or
--              {"missing_profiles": […]} with nothing written of this post when a routed channel's profile has no
--              rendering
-- Appends      enqueue | validation_failed per delivery, dedup_suppressed per channel passed over,
--              message_tag_mismatch
-- Locks        messages (the row is the mutex of its content), then deliveries and their trigger's tables
--
-- Where a post goes is decided before its content is waited for: a channel that changes meanwhile gets it as it was.
-- READ COMMITTED is part of the contract; see enqueue_distinct_posts.
CREATE OR REPLACE FUNCTION enqueue_messages_and_deliveries_batch(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_kind text,
    p_posts jsonb,
    p_now timestamptz DEFAULT NULL,
    p_audit_deduped boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _posts post[] := posts_in(p_posts);
    _routes record;
    _answers post_answer[];
BEGIN
    _routes := route_posts(p_workspace_id, _posts);
    IF _routes.missing <> '{}' THEN
        _posts := ARRAY(SELECT p FROM unnest(_posts) AS p WHERE NOT _routes.missing ? p.place::text);
    END IF;
    _answers := enqueue_posts(p_workspace_id, _posts, _routes.routes, p_now, p_audit_deduped);

    RETURN (
        SELECT coalesce(jsonb_agg(a.answer ORDER BY a.place), '[]')
        FROM (
            SELECT a.place, jsonb_build_object(
                       'message_id', a.message_id, 'new', a.is_new, 'routed', a.routed, 'enqueued', a.enqueued,
                       'deduped', a.deduped, 'validation_failed', a.validation_failed) AS answer
            FROM unnest(_answers) AS a
            UNION ALL
            SELECT m.place::int, jsonb_build_object('missing_profiles', m.profiles)
            FROM jsonb_each(_routes.missing) AS m (place, profiles)
        ) AS a
    );
END $$;
