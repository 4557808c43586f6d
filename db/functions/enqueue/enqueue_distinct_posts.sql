-- enqueue_distinct_posts(workspace_id, posts, routes, now, audit_deduped) -> an answer for each post
--
-- Stores posts of different contents and puts one delivery per post and routed channel into the queue. New content
-- cannot be in any channel yet: such posts, nearly all, are handled in one statement, whatever their number.
-- enqueue_seen_posts handles the others. Channels show the posts in the order given: each is a microsecond younger than
-- the one before.
--
-- Known content is routed by the tags that it was first seen with, whatever tags the post has. New content that no
-- channel takes is not kept: the same content with other tags is new again. Its row is still written, as the mutex of
-- the content, and deleted at once: a transaction that waits for it then finds none.
--
-- Appends      enqueue | validation_failed per delivery, message_tag_mismatch, those of record_unrouted, and what
--              enqueue_seen_posts appends
-- Locks        messages by content (the row is the mutex of its content), then deliveries and their trigger's tables
--
-- READ COMMITTED is part of the contract: enqueue_seen_posts and reroute_posts must see what the previous holder of a
-- lock wrote.
CREATE OR REPLACE FUNCTION enqueue_distinct_posts(
    p_workspace_id uuid,
    p_posts post[],
    p_routes route[],
    p_now timestamptz,
    p_audit_deduped boolean
)
RETURNS post_answer[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_nestloop = off
AS $$
DECLARE
    _drawn text := new_id();
    _ids text := left(_drawn, 24);
    _first_content_id bigint := id_start(_drawn);
    _first_plan_id bigint := _first_content_id + (1::bigint << 32);
    _first_id bigint := _first_plan_id + (1::bigint << 32);
    _now timestamptz := coalesce(p_now, clock_timestamp());
    _answers post_answer[];
    _seen int[];
    _seen_ids uuid[];
    _retagged jsonb;
    _attempts int := (SELECT p.max_attempts FROM current_policy() AS p);
    _own_attempts jsonb := attempts_by_channel(p_workspace_id);
    _unrouted int[];
    _unrouted_ids uuid[];
    _seen_answers post_answer[];
BEGIN
    WITH locked AS (
        INSERT INTO messages AS m (workspace_id, message_id, hash_version, content_hash, normalization_version, payload,
                                   tags, source, source_ref, first_seen_trace_id, first_ingest_run_id,
                                   last_ingest_run_id)
        SELECT p_workspace_id, id_in(_ids, _first_content_id + p.place), p.hash_version, p.content_hash,
               p.normalization_version, p.payload, p.tags, p.source, p.source_ref, p.trace_id, p.run_id, p.run_id
        FROM unnest(p_posts) AS p
        ORDER BY p.hash_version, p.content_hash
        ON CONFLICT (workspace_id, hash_version, content_hash) DO UPDATE
        SET last_seen_at = clock_timestamp(),
            last_ingest_run_id = excluded.last_ingest_run_id,
            seen_count = m.seen_count + 1
        RETURNING m.hash_version, m.content_hash, m.message_id, m.tags AS kept, m.seen_count = 1 AS is_new
    ), posts AS MATERIALIZED (
        SELECT p.place, p.hash_version, p.content_hash, p.tags, p.scheduled_for, p.max_attempts, p.run_id, p.trace_id,
               p.traceparent, p.batch_id, l.message_id, l.kept, l.is_new,
               _now + (p.place - 1) * interval '1 microsecond' AS now,
               event_context(p.trace_id, p.run_id, coalesce(p.max_attempts, nullif(_attempts, 5))) AS context
        FROM locked l
        JOIN unnest(p_posts) AS p USING (hash_version, content_hash)
    ), shown AS MATERIALIZED ( -- what the deliveries of a route share
        SELECT r.*, p.message_id, p.hash_version, p.content_hash, p.scheduled_for, p.max_attempts, p.trace_id,
               p.traceparent, p.batch_id, p.now, p.context,
               -- Ids count up in insertion order, which is faster for an index.
               sum(cardinality(r.channel_ids)) OVER (ROWS UNBOUNDED PRECEDING) - cardinality(r.channel_ids) AS before,
               CASE WHEN r.plan_hash IS NOT NULL THEN id_in(_ids, _first_plan_id + r.shows) END AS rendering_id,
               CASE WHEN r.plan_hash IS NULL THEN '{}' ELSE jsonb_build_object('plan_hash', r.plan_hash) END AS meta,
               CASE WHEN r.plan_hash IS NULL THEN validation_error(r.problems) END AS error
        FROM posts p
        JOIN unnest(p_routes) AS r USING (place)
        WHERE p.is_new
    ), stored AS (
        INSERT INTO renderings (workspace_id, rendering_id, message_id, plan_hash, rendered_text, plan, calls,
                                template_version)
        SELECT p_workspace_id, s.rendering_id, s.message_id, s.plan_hash, s.rendered_text, s.plan, s.calls,
               s.template_version
        FROM shown s
        WHERE s.rendering_id IS NOT NULL
          AND s.shows = s.number
    ), deliveries_of AS MATERIALIZED (
        SELECT r.number, r.channel_id, id_in(_ids, _first_id + r.nth) AS delivery_id
        FROM (
            SELECT s.number, unnest(s.channel_ids) AS channel_id,
                   generate_series(s.before + 1, s.before + cardinality(s.channel_ids)) AS nth
            FROM shown s
        ) AS r
    ), born AS (
        INSERT INTO deliveries (delivery_id, workspace_id, message_id, channel_id, rendering_id, hash_version,
                                content_hash, not_before, scheduled_for, status, max_attempts, last_error, render_meta,
                                plan_hash, template_version, trace_id, traceparent, enqueue_batch_id, event_count,
                                created_at, updated_at)
        SELECT d.delivery_id, p_workspace_id, s.message_id, d.channel_id, s.rendering_id, s.hash_version,
               s.content_hash, s.now, s.scheduled_for,
               CASE WHEN s.plan_hash IS NULL THEN 'failed_permanent' ELSE 'queued' END::delivery_status,
               coalesce(s.max_attempts,
                        CASE WHEN _own_attempts IS NOT NULL THEN (_own_attempts ->> d.channel_id::text)::int END,
                        _attempts), s.error, s.meta,
               s.plan_hash, s.template_version, s.trace_id, s.traceparent, s.batch_id, 1, s.now, s.now
        FROM deliveries_of d
        JOIN shown s USING (number)
    ), told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, result, error, meta)
        SELECT d.delivery_id, p_workspace_id, d.delivery_id, -- one id for both: no other event uses it
               s.message_id, d.channel_id,
               CASE WHEN s.plan_hash IS NULL THEN 'validation_failed' ELSE 'enqueue' END::event_action,
               CASE WHEN s.plan_hash IS NULL THEN 'error' ELSE 'ok' END::event_result,
               s.error, CASE WHEN _own_attempts IS NULL OR s.max_attempts IS NOT NULL THEN s.context
                             ELSE s.context || own_attempts(_own_attempts, d.channel_id) END
        FROM deliveries_of d
        JOIN shown s USING (number)
    )
    SELECT array_agg((p.place, CASE WHEN r.place IS NOT NULL THEN p.message_id END, true,
                      coalesce(r.enqueued, 0) + coalesce(r.failed, 0), coalesce(r.enqueued, 0), 0,
                      coalesce(r.failed, 0), NULL)::post_answer) FILTER (WHERE p.is_new),
           array_agg(p.place) FILTER (WHERE NOT p.is_new),
           array_agg(p.message_id) FILTER (WHERE NOT p.is_new),
           jsonb_object_agg(p.place, jsonb_build_object(
               'message_id', p.message_id, 'kept', p.kept, 'given', p.tags,
               'trace_id', p.trace_id, 'run_id', p.run_id)) FILTER (WHERE p.kept <> p.tags),
           array_agg(p.place) FILTER (WHERE p.is_new AND r.place IS NULL),
           array_agg(p.message_id) FILTER (WHERE p.is_new AND r.place IS NULL)
    INTO _answers, _seen, _seen_ids, _retagged, _unrouted, _unrouted_ids
    FROM posts p
    LEFT JOIN (
        SELECT s.place, sum(cardinality(s.channel_ids)) FILTER (WHERE s.plan_hash IS NOT NULL) AS enqueued,
               sum(cardinality(s.channel_ids)) FILTER (WHERE s.plan_hash IS NULL) AS failed
        FROM shown s
        GROUP BY s.place
    ) AS r USING (place);
    IF _unrouted IS NOT NULL THEN
        DELETE FROM messages m
        WHERE m.workspace_id = p_workspace_id
          AND m.message_id = ANY (_unrouted_ids);
        PERFORM record_unrouted(p_workspace_id, p_posts, _unrouted, '{}');
    END IF;
    IF _seen IS NULL THEN
        RETURN _answers;
    END IF;

    IF _retagged IS NOT NULL THEN
        INSERT INTO events (workspace_id, message_id, action, meta)
        SELECT p_workspace_id, (r.meta ->> 'message_id')::uuid, 'message_tag_mismatch',
               r.meta - 'message_id' || jsonb_build_object('kept', quoted_all(r.meta -> 'kept'),
                                                           'given', quoted_all(r.meta -> 'given'))
        FROM jsonb_each(_retagged) AS r (place, meta);
    END IF;
    _seen_answers := enqueue_seen_posts(
        p_workspace_id, ARRAY(SELECT p FROM unnest(p_posts) AS p WHERE p.place = ANY (_seen)),
        CASE WHEN _retagged IS NULL THEN p_routes ELSE reroute_posts(p_workspace_id, p_posts, p_routes, _retagged) END,
        _seen, _seen_ids, p_now, p_audit_deduped);
    IF _retagged IS NULL THEN
        RETURN _answers || _seen_answers;
    END IF;
    RETURN _answers || ARRAY(
        SELECT jsonb_populate_record(a, jsonb_strip_nulls(jsonb_build_object(
                   'first_tags', _retagged #> ARRAY[a.place::text, 'kept'])))
        FROM unnest(_seen_answers) AS a);
END $$;
