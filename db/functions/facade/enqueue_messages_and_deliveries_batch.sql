-- enqueue_messages_and_deliveries_batch(workspace_id, endpoint_id, kind, posts, now, audit_deduped)
-- -> one answer per post, in order
--
-- The name that the source documents use, for operators, scripts and finish_staged_post. admit_posts and
-- ingest_pull_chunk take the same steps with their own checks: parse_posts, route_posts, enqueue_posts. Stores each
-- normalised, compiled post once and puts one delivery per routed channel into the queue, set-based. Channels that have
-- the content already, sent within their TTL or still in flight, are skipped with an event; twins inside the batch are
-- suppressed by the one before them. Contents are locked in one order whatever the order given, so concurrent batches
-- cannot deadlock.
--
-- endpoint_id  an endpoint of the workspace, or null
-- kind         push, pull, publish, or null. Both are kept in the source of each post that does not name its own.
-- post         {"content_hash", "hash_version", "payload", "tags", "routing", "source", "source_ref",
--              "scheduled_for", "run_id", "trace_id", "traceparent", "batch_id", "max_attempts",
--              "renderings": [{"profile_hash", "plan_hash", "rendered_text", "plan", "calls",
--                              "template_version", "problems"}]}
--              tags are stored in their canonical form (canonical_tags)
-- answer       {"message_id", "new", "routed", "enqueued", "deduped", "validation_failed"}, with "first_tags" when the
--              content was first seen with other tags, by which it is routed; message_id is null when no channel takes
--              a new content, of which only the event is kept; or
--              {"missing_profiles": […]} with nothing written of this post when a routed channel's profile has no
--              rendering
-- Appends      enqueue | validation_failed per delivery, dedup_suppressed per skipped channel,
--              message_tag_mismatch, enqueue with the result error and the code no_channel
-- Locks        messages (the row is the mutex of its content), then deliveries and their trigger's tables
-- Raises       AP011 for an unknown kind, or an endpoint that the workspace does not have
--
-- A post is routed before its content's lock is waited for: a channel that changes meanwhile gets it by old settings.
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
    _source jsonb := jsonb_strip_nulls(jsonb_build_object('kind', p_kind, 'endpoint_id', p_endpoint_id));
    _posts post[];
    _routes record;
    _answers post_answer[];
BEGIN
    IF p_kind NOT IN ('push', 'pull', 'publish') THEN
        RAISE EXCEPTION 'unknown kind %', p_kind USING ERRCODE = 'AP011', HINT = 'kind is push, pull or publish';
    ELSIF p_endpoint_id IS NOT NULL AND NOT EXISTS (
        SELECT 1
        FROM workspace_endpoints e
        WHERE e.workspace_id = p_workspace_id
          AND e.endpoint_id = p_endpoint_id
    ) THEN
        RAISE EXCEPTION 'the workspace has no endpoint %', p_endpoint_id USING ERRCODE = 'AP011';
    END IF;

    _posts := parse_posts(p_posts, _source);
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
                       'deduped', a.deduped, 'validation_failed', a.validation_failed)
                       || CASE WHEN a.first_tags IS NULL THEN '{}'
                               ELSE jsonb_build_object('first_tags', a.first_tags) END AS answer
            FROM unnest(_answers) AS a
            UNION ALL
            SELECT m.place::int, jsonb_build_object('missing_profiles', m.profiles)
            FROM jsonb_each(_routes.missing) AS m (place, profiles)
        ) AS a
    );
END $$;
