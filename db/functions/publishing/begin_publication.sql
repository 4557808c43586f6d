-- begin_publication(workspace_id, publication_id, version, post) -> {"verdict", "delivery_id"}
--
-- The only door from a publication to the queue: makes its delivery. Routing and the dedup of posts do not apply.
--
-- post       as for enqueue_messages_and_deliveries, with the one rendering of its channel
-- Verdicts   begun
--            already             its delivery exists: a repeated command
--            stale               another version, or it is not due any more
--            plan_changed        the channel shows another plan than the approved one: paused
--            channel_disabled    paused
--            content             no plan is possible any more: failed, and a dead letter
-- Changes    a delivery of the same content that this publication had before an edit comes back instead of a new one
-- Appends    enqueue or manual_requeue; publication_paused, publication_failed
-- Locks      messages by content, deliveries and their triggers' tables, publications
CREATE OR REPLACE FUNCTION begin_publication(p_workspace_id uuid, p_publication_id uuid, p_version int, p_post jsonb)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    _post post := (parse_posts(jsonb_build_array(p_post)))[1];
    _rendering jsonb := p_post #> '{renderings,0}';
    _plan_hash text := p_post #>> '{renderings,0,plan_hash}';
    _publication publications;
    _is_disabled boolean;
    _verdict text;
    _message_id uuid;
    _earlier uuid;
    _rendering_id uuid;
    _delivery_id uuid;
    _now timestamptz;
BEGIN
    -- Without a lock, so that repeated commands cost nothing; judged again under the locks.
    SELECT publication_standing(p, p_version) INTO _verdict
    FROM publications p
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id;
    IF coalesce(_verdict, 'stale') <> 'due' THEN
        RETURN jsonb_build_object('verdict', coalesce(_verdict, 'stale'));
    END IF;

    INSERT INTO messages AS m (workspace_id, hash_version, content_hash, normalization_version, payload, tags, source,
                               first_seen_trace_id)
    VALUES (p_workspace_id, _post.hash_version, _post.content_hash, _post.normalization_version, _post.payload, '{}',
            jsonb_build_object('publication_id', p_publication_id), _post.trace_id)
    ON CONFLICT (workspace_id, hash_version, content_hash) DO UPDATE
    SET last_seen_at = clock_timestamp(),
        seen_count = m.seen_count + 1
    RETURNING m.message_id INTO _message_id;

    SELECT d.delivery_id
    INTO _earlier
    FROM deliveries d
    WHERE d.workspace_id = p_workspace_id
      AND d.message_id = _message_id
      AND d.channel_id = (
          SELECT p.channel_id
          FROM publications p
          WHERE p.workspace_id = p_workspace_id
            AND p.publication_id = p_publication_id
      )
      AND d.enqueue_batch_id = p_publication_id
      AND d.status IN ('failed_permanent', 'dead')
    FOR UPDATE;

    SELECT p.*
    INTO _publication
    FROM publications p
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id
    FOR NO KEY UPDATE;
    _verdict := publication_standing(_publication, p_version);
    IF _verdict <> 'due' THEN
        RETURN jsonb_build_object('verdict', _verdict);
    END IF;

    SELECT NOT c.enabled
    INTO _is_disabled
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = _publication.channel_id;
    _now := clock_timestamp();
    _verdict := CASE
        WHEN _is_disabled THEN 'channel_disabled'
        WHEN _plan_hash IS NULL THEN 'content'
        WHEN _plan_hash <> _publication.approved_plan_hash THEN 'plan_changed'
    END;
    IF _verdict IS NOT NULL THEN
        UPDATE publications p
        SET status = CASE _verdict WHEN 'content' THEN 'failed' ELSE 'paused' END,
            pause_code = nullif(_verdict, 'content'),
            last_error = CASE _verdict WHEN 'content'
                THEN validation_error(_rendering -> 'problems') || '{"error_type": "content"}' END,
            changed_by = NULL,
            updated_at = _now
        WHERE p.workspace_id = p_workspace_id
          AND p.publication_id = p_publication_id
        RETURNING p.* INTO _publication;
        IF _verdict = 'content' THEN
            PERFORM write_dead_letter(_publication, NULL);
        END IF;
        RETURN jsonb_build_object('verdict', _verdict);
    END IF;

    INSERT INTO renderings (workspace_id, message_id, plan_hash, rendered_text, plan, calls, template_version)
    VALUES (p_workspace_id, _message_id, _plan_hash, _rendering ->> 'rendered_text', _rendering -> 'plan',
            (_rendering ->> 'calls')::smallint, _rendering ->> 'template_version')
    ON CONFLICT (message_id, plan_hash, workspace_id) DO NOTHING;
    SELECT r.rendering_id
    INTO _rendering_id
    FROM (
        SELECT r.rendering_id, r.workspace_id
        FROM renderings r
        WHERE r.message_id = _message_id
          AND r.plan_hash = _plan_hash
        OFFSET 0
    ) AS r
    WHERE r.workspace_id = p_workspace_id;
    _delivery_id := coalesce(_earlier, new_id());
    UPDATE publications p
    SET delivery_id = _delivery_id,
        updated_at = _now
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id;
    IF _earlier IS NOT NULL THEN
        -- What was approved now goes out, from its first part unless it is the plan that was begun.
        UPDATE deliveries d
        SET rendering_id = _rendering_id,
            plan_hash = _plan_hash,
            template_version = _rendering ->> 'template_version',
            render_meta = jsonb_build_object('plan_hash', _plan_hash, 'publication', d.render_meta -> 'publication')
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = _earlier
          AND d.plan_hash <> _plan_hash;
        PERFORM requeue(p_workspace_id, ARRAY[_earlier], 'autopost', 'the publication was scheduled again', 4, true);
        RETURN jsonb_build_object('verdict', 'begun', 'delivery_id', _delivery_id);
    END IF;

    INSERT INTO deliveries (workspace_id, delivery_id, message_id, channel_id, rendering_id, hash_version, content_hash,
                            not_before, policy, max_attempts, render_meta, plan_hash, template_version, trace_id,
                            traceparent, enqueue_batch_id, event_count, created_at, updated_at)
    VALUES (p_workspace_id, _delivery_id, _message_id, _publication.channel_id, _rendering_id, _post.hash_version,
            _post.content_hash, _now, 'publication', 4,
            jsonb_build_object('plan_hash', _plan_hash, 'publication', jsonb_build_object(
                'publication_id', p_publication_id, 'media_type', _publication.media_type,
                'scheduled_at', date_part('epoch', _publication.scheduled_at))),
            _plan_hash, _rendering ->> 'template_version', coalesce(_post.trace_id, _publication.trace_id),
            coalesce(_post.traceparent, _publication.traceparent), p_publication_id, 1, _now, _now);
    INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, meta)
    VALUES (p_workspace_id, _delivery_id, _message_id, _publication.channel_id, 'enqueue',
            event_context(coalesce(_post.trace_id, _publication.trace_id), NULL, 4)
                || jsonb_build_object('publication_id', p_publication_id, 'version', p_version));
    RETURN jsonb_build_object('verdict', 'begun', 'delivery_id', _delivery_id);
END $$;
