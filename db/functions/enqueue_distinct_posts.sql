-- enqueue_distinct_posts(workspace_id, posts, routes, now, audit_deduped) -> an answer for each post
--
-- Stores posts of different contents and puts one delivery per post and routed channel into the queue, in two
-- statements however many they are. Channels that have the content already, sent within their TTL or still in flight,
-- are passed over with an event. Channels show the posts in the order given: each is a microsecond younger than the one
-- before.
--
-- Appends      enqueue | validation_failed per delivery, dedup_suppressed per channel passed over,
--              message_tag_mismatch
-- Locks        messages by content (the row is the mutex of its content), then deliveries and their trigger's tables
--
-- READ COMMITTED is part of the contract: the second statement must see what the holder of a lock wrote.
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
    _places int[];
    _message_ids uuid[];
    _are_new boolean[];
    _retagged jsonb;
    _drawn_contents text := new_id();
    _first_content_id bigint := id_start(_drawn_contents);
    _content_ids text := left(_drawn_contents, 24);
    _drawn_plans text := new_id();
    _first_plan_id bigint := id_start(_drawn_plans);
    _plan_ids text := left(_drawn_plans, 24);
    _drawn text := new_id();
    _first_id bigint := id_start(_drawn);
    _ids text := left(_drawn, 24);
    _now timestamptz;
    _answers post_answer[];
BEGIN
    WITH locked AS (
        INSERT INTO messages AS m (workspace_id, message_id, hash_version, content_hash, normalization_version, payload,
                                   tags, source, source_ref, first_seen_trace_id, first_ingest_run_id,
                                   last_ingest_run_id)
        SELECT p_workspace_id, id_in(_content_ids, _first_content_id + p.place), p.hash_version, p.content_hash,
               p.normalization_version, p.payload, p.tags, p.source, p.source_ref, p.trace_id, p.run_id, p.run_id
        FROM unnest(p_posts) AS p
        ORDER BY p.hash_version, p.content_hash
        ON CONFLICT (workspace_id, hash_version, content_hash) DO UPDATE
        SET last_seen_at = clock_timestamp(),
            last_ingest_run_id = excluded.last_ingest_run_id,
            seen_count = m.seen_count + 1
        RETURNING m.hash_version, m.content_hash, m.message_id, m.tags, m.seen_count = 1 AS is_new
    )
    SELECT array_agg(p.place), array_agg(l.message_id), array_agg(l.is_new),
           jsonb_agg(jsonb_build_object('message_id', l.message_id, 'kept', l.tags, 'given', p.tags, 'trace_id',
                                        p.trace_id, 'run_id', p.run_id))
               FILTER (WHERE l.tags <> p.tags)
    INTO _places, _message_ids, _are_new, _retagged
    FROM locked l
    JOIN unnest(p_posts) AS p USING (hash_version, content_hash);
    _now := coalesce(p_now, clock_timestamp());

    IF _retagged IS NOT NULL THEN
        INSERT INTO events (workspace_id, message_id, action, meta)
        SELECT p_workspace_id, (r.meta ->> 'message_id')::uuid, 'message_tag_mismatch', r.meta - 'message_id'
        FROM jsonb_array_elements(_retagged) AS r (meta);
    END IF;

    WITH shown AS MATERIALIZED ( -- all that the deliveries of a route have in common
        SELECT s.*, coalesce(s.known_id, s.new_id) AS rendering_id
        FROM (
            -- Ids are counted in the order in which rows go in: an index takes them faster so.
            SELECT r.*, sum(cardinality(r.channel_ids)) OVER (ROWS UNBOUNDED PRECEDING) - cardinality(r.channel_ids) AS before,
                   m.message_id, m.is_new, p.hash_version, p.content_hash, p.scheduled_for, p.max_attempts,
                   p.trace_id, p.traceparent, p.batch_id, _now + (m.place - 1) * interval '1 microsecond' AS now,
                   CASE
                       WHEN p.max_attempts IS NULL
                           THEN jsonb_build_object('trace_id', p.trace_id, 'run_id', p.run_id)
                       ELSE jsonb_build_object(
                           'trace_id', p.trace_id, 'run_id', p.run_id, 'max_attempts', p.max_attempts)
                   END AS context,
                   CASE WHEN r.plan_hash IS NOT NULL THEN id_in(_plan_ids, _first_plan_id + r.shows) END AS new_id,
                   CASE WHEN NOT m.is_new THEN (
                       SELECT k.rendering_id
                       FROM ( -- fenced, and not by workspace: a plan by its key would read all that it has
                           SELECT k.workspace_id, k.rendering_id
                           FROM renderings k
                           WHERE k.message_id = m.message_id
                             AND k.plan_hash = r.plan_hash
                           OFFSET 0
                       ) AS k
                       WHERE k.workspace_id = p_workspace_id
                   ) END AS known_id,
                   CASE WHEN r.plan_hash IS NULL THEN 'failed_permanent' ELSE 'queued' END::delivery_status AS status,
                   CASE WHEN r.plan_hash IS NULL THEN 'validation_failed' ELSE 'enqueue' END::event_action AS action,
                   CASE WHEN r.plan_hash IS NULL THEN 'error' ELSE 'ok' END::event_result AS result,
                   CASE WHEN r.plan_hash IS NULL THEN '{}' ELSE jsonb_build_object('plan_hash', r.plan_hash) END AS meta,
                   CASE WHEN r.plan_hash IS NULL THEN jsonb_build_object(
                       'category', 'PERMANENT', 'scope', 'delivery', 'code', 'validation_failed',
                       'problems', r.problems)
                   END AS error
            FROM unnest(_places, _message_ids, _are_new) AS m (place, message_id, is_new)
            JOIN unnest(p_posts) AS p USING (place)
            JOIN unnest(p_routes) AS r USING (place)
        ) AS s
    ), stored AS ( -- the content's lock is held: nobody adds a plan of it meanwhile
        INSERT INTO renderings (workspace_id, rendering_id, message_id, plan_hash, rendered_text, plan, calls,
                                template_version)
        SELECT p_workspace_id, s.new_id, s.message_id, s.plan_hash, s.rendered_text, s.plan, s.calls, s.template_version
        FROM shown s
        WHERE s.new_id IS NOT NULL
          AND s.known_id IS NULL
          AND s.shows = s.number
    ), decided AS MATERIALIZED (
        SELECT r.number, r.channel_id, id_in(_ids, _first_id + r.nth) AS delivery_id,
               CASE WHEN NOT r.is_new THEN (
                   SELECT d.delivery_id
                   FROM deliveries d
                   WHERE d.workspace_id = p_workspace_id
                     AND d.message_id = r.message_id
                     AND d.channel_id = r.channel_id
                     AND (d.status IN ('queued', 'claimed', 'sending', 'retry')
                          OR (d.status = 'sent'
                              AND coalesce(d.sent_at, d.updated_at)
                                  >= _now - make_interval(hours => coalesce(r.dedup_ttl_hours, 168))))
                   LIMIT 1
               ) END AS twin_id,
               r.batch_id IS NOT NULL AND EXISTS ( -- the content's lock is held: nobody adds to this meanwhile
                   SELECT 1
                   FROM deliveries b
                   WHERE b.workspace_id = p_workspace_id
                     AND b.enqueue_batch_id = r.batch_id
                     AND b.channel_id = r.channel_id
                     AND b.hash_version = r.hash_version
                     AND b.content_hash = r.content_hash
               ) AS is_there
        FROM (
            SELECT s.number, s.is_new, s.message_id, s.dedup_ttl_hours, s.batch_id, s.hash_version, s.content_hash,
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
               coalesce(s.max_attempts, 5), s.error, s.meta, s.plan_hash, s.template_version, s.trace_id, s.traceparent, s.batch_id,
               1, s.now, s.now
        FROM decided d
        JOIN shown s USING (number)
        WHERE NOT d.is_there
          AND (d.twin_id IS NULL OR p_audit_deduped)
    ), told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, result, error, meta)
        SELECT d.delivery_id, p_workspace_id, -- one drawn id for both: no other event is told under it
               CASE WHEN d.twin_id IS NULL OR p_audit_deduped THEN d.delivery_id END,
               s.message_id, d.channel_id,
               CASE WHEN d.twin_id IS NULL THEN s.action ELSE 'dedup_suppressed' END,
               CASE WHEN d.twin_id IS NULL THEN s.result ELSE 'ok' END,
               CASE WHEN d.twin_id IS NULL THEN s.error END,
               CASE WHEN d.twin_id IS NULL THEN s.context ELSE s.context || jsonb_build_object('twin', d.twin_id) END
        FROM decided d
        JOIN shown s USING (number)
        WHERE NOT d.is_there OR (d.twin_id IS NOT NULL AND NOT p_audit_deduped)
    )
    SELECT array_agg((
               m.place, m.message_id, m.is_new, coalesce(d.routed, 0), coalesce(d.enqueued, 0), coalesce(d.deduped, 0),
               coalesce(d.failed, 0)
           )::post_answer)
    INTO _answers
    FROM unnest(_places, _message_ids, _are_new) AS m (place, message_id, is_new)
    LEFT JOIN (
        SELECT s.place, sum(c.routed) AS routed, sum(o.deduped) AS deduped,
               sum(c.routed - coalesce(o.passed_over, 0)) FILTER (WHERE s.status = 'queued') AS enqueued,
               sum(c.routed - coalesce(o.passed_over, 0)) FILTER (WHERE s.status = 'failed_permanent') AS failed
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
    RETURN _answers;
END $$;
