-- enqueue_seen_posts(workspace_id, posts, routes, places, message_ids, now, audit_deduped) -> an answer for each post
--
-- The part of enqueue_distinct_posts for contents that were seen before. Channels that have the content already, sent
-- within their TTL or still in flight, are skipped with an event; so are those that have it from the same batch id.
-- A content that cannot be shown in a channel is recorded once a day, as long as the reason is the same: a row and an
-- event the first time, later posts are only counted.
--
-- message_ids  of the posts at these places; their rows are locked
-- Appends      enqueue | validation_failed per delivery, dedup_suppressed per skipped channel, those of
--              record_unrouted
-- Locks        deliveries and their trigger's tables
-- Raises       serialization_failure when a channel needs a rendering that the post does not bring: the content was
--              stored, with other tags, after the post was routed. A second call returns the missing profiles.
CREATE OR REPLACE FUNCTION enqueue_seen_posts(
    p_workspace_id uuid,
    p_posts post[],
    p_routes route[],
    p_places int[],
    p_message_ids uuid[],
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
    _first_plan_id bigint := id_start(_drawn);
    _first_id bigint := _first_plan_id + (1::bigint << 32);
    _now timestamptz := coalesce(p_now, clock_timestamp());
    _answers post_answer[];
    _attempts int := (SELECT p.max_attempts FROM current_policy() AS p);
    _own_attempts jsonb := attempts_by_channel(p_workspace_id);
    _unrouted int[];
    _unrouted_ids uuid[];
    _lacks boolean;
BEGIN
    WITH shown AS MATERIALIZED ( -- what the deliveries of a route share
        SELECT s.*, coalesce(s.known_id, s.new_id) AS rendering_id
        FROM (
            -- Ids count up in insertion order, which is faster for an index.
            SELECT r.*, sum(cardinality(r.channel_ids)) OVER (ROWS UNBOUNDED PRECEDING) - cardinality(r.channel_ids) AS before,
                   m.message_id, p.hash_version, p.content_hash, p.scheduled_for, p.max_attempts,
                   p.trace_id, p.traceparent, p.batch_id, _now + (m.place - 1) * interval '1 microsecond' AS now,
                   event_context(p.trace_id, p.run_id, coalesce(p.max_attempts, nullif(_attempts, 5))) AS context,
                   CASE WHEN r.plan_hash IS NOT NULL THEN id_in(_ids, _first_plan_id + r.shows) END AS new_id,
                   (
                       SELECT k.rendering_id
                       FROM ( -- no workspace_id inside the fence: its key would read the whole workspace
                           SELECT k.workspace_id, k.rendering_id
                           FROM renderings k
                           WHERE k.message_id = m.message_id
                             AND k.plan_hash = r.plan_hash
                           OFFSET 0
                       ) AS k
                       WHERE k.workspace_id = p_workspace_id
                   ) AS known_id,
                   CASE WHEN r.plan_hash IS NULL THEN 'failed_permanent' ELSE 'queued' END::delivery_status AS status,
                   CASE WHEN r.plan_hash IS NULL THEN 'validation_failed' ELSE 'enqueue' END::event_action AS action,
                   CASE WHEN r.plan_hash IS NULL THEN 'error' ELSE 'ok' END::event_result AS result,
                   CASE WHEN r.plan_hash IS NULL THEN '{}' ELSE jsonb_build_object('plan_hash', r.plan_hash) END AS meta,
                   CASE WHEN r.plan_hash IS NULL THEN validation_error(r.problems) END AS error
            FROM unnest(p_places, p_message_ids) AS m (place, message_id)
            JOIN unnest(p_posts) AS p USING (place)
            JOIN unnest(p_routes) AS r USING (place)
        ) AS s
    ), stored AS ( -- under the lock of the content, so no other plan of it is added
        INSERT INTO renderings (workspace_id, rendering_id, message_id, plan_hash, rendered_text, plan, calls,
                                template_version)
        SELECT p_workspace_id, s.new_id, s.message_id, s.plan_hash, s.rendered_text, s.plan, s.calls, s.template_version
        FROM shown s
        WHERE s.new_id IS NOT NULL
          AND s.known_id IS NULL
          AND s.shows = s.number
    ), decided AS MATERIALIZED (
        SELECT r.number, r.channel_id, id_in(_ids, _first_id + r.nth) AS delivery_id,
               (
                   SELECT d.delivery_id
                   FROM deliveries d
                   WHERE d.workspace_id = p_workspace_id
                     AND d.message_id = r.message_id
                     AND d.channel_id = r.channel_id
                     AND is_twin(d.status, coalesce(d.sent_at, d.updated_at), r.dedup_ttl_hours, _now)
                   LIMIT 1
               ) AS twin_id,
               r.batch_id IS NOT NULL AND EXISTS ( -- under the lock of the content
                   SELECT 1
                   FROM deliveries b
                   WHERE b.workspace_id = p_workspace_id
                     AND b.enqueue_batch_id = r.batch_id
                     AND b.channel_id = r.channel_id
                     AND b.hash_version = r.hash_version
                     AND b.content_hash = r.content_hash
               ) AS is_there,
               r.status = 'failed_permanent' AND EXISTS (
                   SELECT 1
                   FROM deliveries f
                   WHERE f.workspace_id = p_workspace_id
                     AND f.message_id = r.message_id
                     AND f.channel_id = r.channel_id
                     AND f.status = 'failed_permanent'
                     AND f.created_at > _now - interval '24 hours'
                     AND f.last_error ->> 'code' = r.error ->> 'code'
                     AND f.last_error #> '{problems,0,code}' = r.error #> '{problems,0,code}'
               ) AS is_told
        FROM (
            SELECT s.number, s.message_id, s.dedup_ttl_hours, s.batch_id, s.hash_version, s.content_hash, s.status, s.error,
                   unnest(s.channel_ids) AS channel_id,
                   generate_series(s.before + 1, s.before + cardinality(s.channel_ids)) AS nth
            FROM shown s
        ) AS r
    ), born AS (
        INSERT INTO deliveries (delivery_id, workspace_id, message_id, channel_id, rendering_id, hash_version,
                                content_hash, not_before, scheduled_for, status, max_attempts, last_error, render_meta,
                                plan_hash, template_version, trace_id, traceparent, enqueue_batch_id, event_count,
                                created_at, updated_at)
        SELECT d.delivery_id, p_workspace_id, s.message_id, d.channel_id, s.rendering_id, s.hash_version,
               s.content_hash, s.now, s.scheduled_for, CASE WHEN d.twin_id IS NULL THEN s.status ELSE 'deduped' END,
               coalesce(s.max_attempts, (_own_attempts ->> d.channel_id::text)::int, _attempts), s.error, s.meta,
               s.plan_hash, s.template_version, s.trace_id, s.traceparent, s.batch_id, 1, s.now, s.now
        FROM decided d
        JOIN shown s USING (number)
        WHERE NOT d.is_there
          AND CASE WHEN d.twin_id IS NULL THEN NOT d.is_told ELSE p_audit_deduped END
    ), told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, result, error, meta)
        SELECT d.delivery_id, p_workspace_id, -- one id for both: no other event uses it
               CASE WHEN d.twin_id IS NULL OR p_audit_deduped THEN d.delivery_id END,
               s.message_id, d.channel_id,
               CASE WHEN d.twin_id IS NULL THEN s.action ELSE 'dedup_suppressed' END,
               CASE WHEN d.twin_id IS NULL THEN s.result ELSE 'ok' END,
               CASE WHEN d.twin_id IS NULL THEN s.error END,
               s.context || CASE WHEN d.twin_id IS NULL THEN '{}' ELSE jsonb_build_object('twin', d.twin_id) END
                   || CASE WHEN _own_attempts IS NULL OR s.max_attempts IS NOT NULL THEN '{}'
                           ELSE own_attempts(_own_attempts, d.channel_id) END
        FROM decided d
        JOIN shown s USING (number)
        WHERE CASE WHEN d.twin_id IS NULL THEN NOT (d.is_there OR d.is_told) ELSE NOT (d.is_there AND p_audit_deduped) END
    )
    SELECT array_agg((
               m.place, m.message_id, false, coalesce(d.routed, 0), coalesce(d.enqueued, 0), coalesce(d.deduped, 0),
               coalesce(d.failed, 0), NULL
           )::post_answer),
           array_agg(m.place) FILTER (WHERE d.place IS NULL),
           array_agg(m.message_id) FILTER (WHERE d.place IS NULL),
           bool_or(d.lacks)
    INTO _answers, _unrouted, _unrouted_ids, _lacks
    FROM unnest(p_places, p_message_ids) AS m (place, message_id)
    LEFT JOIN (
        SELECT s.place, sum(c.routed) AS routed, sum(o.deduped) AS deduped,
               sum(c.routed - coalesce(o.passed_over, 0)) FILTER (WHERE s.status = 'queued') AS enqueued,
               sum(c.routed - coalesce(o.passed_over, 0)) FILTER (WHERE s.status = 'failed_permanent') AS failed,
               bool_or(s.plan_hash IS NULL AND s.problems IS NULL AND c.routed > coalesce(o.passed_over, 0)) AS lacks
        FROM shown s
        CROSS JOIN LATERAL (SELECT cardinality(s.channel_ids) AS routed) AS c
        LEFT JOIN (
            SELECT d.number, count(*) AS passed_over, count(d.twin_id) AS deduped
            FROM decided d
            WHERE d.is_there OR d.twin_id IS NOT NULL
            GROUP BY d.number
        ) AS o USING (number)
        GROUP BY s.place
    ) AS d USING (place);
    IF _lacks THEN
        RAISE EXCEPTION 'a post was routed before its content was stored with other tags'
            USING ERRCODE = 'serialization_failure', HINT = 'call again';
    END IF;
    IF _unrouted IS NOT NULL THEN
        PERFORM record_unrouted(p_workspace_id, p_posts, _unrouted, _unrouted_ids);
    END IF;
    RETURN _answers;
END $$;
