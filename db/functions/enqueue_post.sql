-- enqueue_post(workspace_id, post, now, audit_deduped) -> {"message_id", "new", "routed", "enqueued", "deduped", …}
--
-- The work of enqueue_messages_and_deliveries, for a post whose renderings were found to be complete.
--
-- Appends      enqueue | validation_failed per delivery, dedup_suppressed per channel passed over,
--              message_tag_mismatch
-- Locks        messages (the row is the mutex of its content), then deliveries and their trigger's tables
-- Raises       AP008 when a channel's profile changed while the content was waited for; compile again
--
-- READ COMMITTED is part of the contract: the second statement must see what the holder of the lock wrote.
CREATE OR REPLACE FUNCTION enqueue_post(
    p_workspace_id uuid,
    p_post jsonb,
    p_now timestamptz,
    p_audit_deduped boolean
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _hash_version int := (p_post ->> 'hash_version')::int;
    _content_hash text := p_post ->> 'content_hash';
    _scheduled_for timestamptz := (p_post ->> 'scheduled_for')::timestamptz;
    _max_attempts int := coalesce((p_post ->> 'max_attempts')::int, 5);
    _trace_id text := p_post ->> 'trace_id';
    _traceparent text := p_post ->> 'traceparent';
    _batch_id uuid := (p_post ->> 'batch_id')::uuid;
    _run_id uuid := (p_post ->> 'run_id')::uuid;
    _tags text[] := ARRAY(SELECT jsonb_array_elements_text(p_post -> 'tags'));
    _context jsonb;
    _message record;
    _ids text := new_id();
    _first_id bigint := id_start(_ids);
    _event_ids text := new_id();
    _first_event_id bigint := id_start(_event_ids);
    _now timestamptz;
    _answer jsonb;
BEGIN
    _context := jsonb_build_object('trace_id', _trace_id, 'run_id', _run_id);

    INSERT INTO messages AS m (workspace_id, hash_version, content_hash, normalization_version, payload, tags,
                               source, source_ref, first_seen_trace_id, first_ingest_run_id, last_ingest_run_id)
    VALUES (p_workspace_id, _hash_version, _content_hash,
            coalesce((p_post ->> 'normalization_version')::int, 1), p_post -> 'payload', _tags,
            p_post -> 'source', p_post ->> 'source_ref', _trace_id, _run_id, _run_id)
    ON CONFLICT (workspace_id, hash_version, content_hash) DO UPDATE
    SET last_seen_at = clock_timestamp(),
        last_ingest_run_id = excluded.last_ingest_run_id,
        seen_count = m.seen_count + 1
    RETURNING m.message_id, m.tags, m.seen_count = 1 AS is_new
    INTO _message;
    _now := coalesce(p_now, clock_timestamp());

    IF _message.tags <> _tags THEN
        INSERT INTO events (workspace_id, message_id, action, meta)
        VALUES (p_workspace_id, _message.message_id, 'message_tag_mismatch',
                _context || jsonb_build_object('kept', _message.tags, 'given', _tags));
    END IF;

    WITH given AS MATERIALIZED (
        SELECT *
        FROM jsonb_to_recordset(p_post -> 'renderings')
            AS g (profile_hash text, plan_hash text, rendered_text text, plan jsonb, calls smallint,
                  template_version text, problems jsonb)
    ), stored AS (
        INSERT INTO renderings (workspace_id, message_id, plan_hash, rendered_text, plan, calls, template_version)
        SELECT DISTINCT ON (g.plan_hash)
               p_workspace_id, _message.message_id, g.plan_hash, g.rendered_text, g.plan, g.calls, g.template_version
        FROM given g
        WHERE g.plan_hash IS NOT NULL
        ORDER BY g.plan_hash
        ON CONFLICT DO NOTHING
        RETURNING plan_hash, rendering_id
    ), known AS MATERIALIZED (
        SELECT plan_hash, rendering_id FROM stored
        UNION ALL
        SELECT r.plan_hash, r.rendering_id
        FROM renderings r
        WHERE NOT _message.is_new
          AND r.workspace_id = p_workspace_id
          AND r.message_id = _message.message_id
    ), profiles AS MATERIALIZED (
        SELECT g.profile_hash, g.template_version, k.rendering_id,
               CASE WHEN k.plan_hash IS NULL THEN '{}' ELSE jsonb_build_object('plan_hash', k.plan_hash) END AS meta,
               CASE WHEN k.plan_hash IS NULL THEN jsonb_build_object(
                   'category', 'PERMANENT', 'scope', 'delivery', 'code', 'validation_failed', 'problems', g.problems)
               END AS error
        FROM given g
        LEFT JOIN known k USING (plan_hash)
    ), routed AS MATERIALIZED (
        SELECT row_number() OVER () AS nth, r.channel_id, p.profile_hash IS NULL AS unknown, p.rendering_id,
               p.template_version, p.meta, p.error, twin.delivery_id AS twin_id
        FROM routed_channels(p_workspace_id, p_post) AS r
        LEFT JOIN profiles p USING (profile_hash)
        LEFT JOIN LATERAL (
            SELECT d.delivery_id
            FROM deliveries d
            WHERE NOT _message.is_new
              AND d.workspace_id = p_workspace_id
              AND d.message_id = _message.message_id
              AND d.channel_id = r.channel_id
              AND (d.status IN ('queued', 'claimed', 'sending', 'retry')
                   OR (d.status = 'sent'
                       AND coalesce(d.sent_at, d.updated_at)
                           >= _now - make_interval(hours => coalesce(r.dedup_ttl_hours, 168))))
            LIMIT 1
        ) AS twin ON true
    ), born AS (
        INSERT INTO deliveries (delivery_id, workspace_id, message_id, channel_id, rendering_id, hash_version,
                                content_hash, not_before, scheduled_for, status, max_attempts, last_error, render_meta,
                                template_version, trace_id, traceparent, enqueue_batch_id, event_count, created_at,
                                updated_at)
        SELECT id_in(_ids, _first_id + r.nth), p_workspace_id, _message.message_id, r.channel_id,
               r.rendering_id, _hash_version, _content_hash, _now, _scheduled_for,
               CASE
                   WHEN r.twin_id IS NOT NULL THEN 'deduped'
                   WHEN r.rendering_id IS NULL THEN 'failed_permanent'
                   ELSE 'queued'
               END::delivery_status,
               _max_attempts, r.error, r.meta, r.template_version, _trace_id, _traceparent, _batch_id, 1, _now, _now
        FROM routed r
        WHERE (r.twin_id IS NULL OR p_audit_deduped)
          AND (_batch_id IS NULL OR NOT EXISTS ( -- the content's lock is held: nobody adds to this meanwhile
              SELECT 1
              FROM deliveries b
              WHERE b.workspace_id = p_workspace_id
                AND b.enqueue_batch_id = _batch_id
                AND b.channel_id = r.channel_id
                AND b.hash_version = _hash_version
                AND b.content_hash = _content_hash
          ))
        RETURNING delivery_id, channel_id, status, last_error
    ), told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, result, error, meta)
        SELECT id_in(_event_ids, _first_event_id + row_number() OVER ()),
               p_workspace_id, b.delivery_id, _message.message_id, b.channel_id,
               CASE b.status
                   WHEN 'queued' THEN 'enqueue'
                   WHEN 'deduped' THEN 'dedup_suppressed'
                   ELSE 'validation_failed'
               END::event_action,
               CASE WHEN b.status = 'failed_permanent' THEN 'error' ELSE 'ok' END::event_result,
               b.last_error,
               _context
        FROM born b
        UNION ALL
        SELECT new_id(), p_workspace_id, NULL, _message.message_id, r.channel_id, 'dedup_suppressed', 'ok', NULL,
               _context || jsonb_build_object('twin', r.twin_id)
        FROM routed r
        WHERE r.twin_id IS NOT NULL AND NOT p_audit_deduped
    )
    SELECT jsonb_build_object(
        'message_id', _message.message_id,
        'new', _message.is_new,
        'routed', (SELECT count(*) FROM routed),
        'unknown', (SELECT count(*) FROM routed WHERE unknown),
        'enqueued', count(*) FILTER (WHERE b.status = 'queued'),
        'validation_failed', count(*) FILTER (WHERE b.status = 'failed_permanent'),
        'deduped', (SELECT count(*) FROM routed WHERE twin_id IS NOT NULL))
    INTO _answer
    FROM born b;
    IF (_answer ->> 'unknown')::int > 0 THEN
        RAISE EXCEPTION 'profiles changed' USING ERRCODE = 'AP008';
    END IF;
    RETURN _answer - 'unknown';
END $$;
