-- preview_post(workspace_id, endpoint_id, post, payload_hash) -> what would become of a push, and why
--
-- Decides for every channel of the workspace at once, also for those that the post does not go to. The rules are those
-- of admit_posts and enqueue_messages_and_deliveries; STABLE, so it can neither write nor lock, and reads everything as
-- of one moment.
--
-- post         as for enqueue_messages_and_deliveries, without renderings; a content_hash of null is not known yet.
--              A post with a request would be staged first, if a channel takes it by its own tags
-- Returns      {"workspace_status",
--               "receipt": null | {"of", "run_id", "until"},      the earlier request that this one repeats
--               "retry_after_ms",                                 what the gate would ask for; null lets it pass
--               "message_id",                                     of the same content, else null
--               "tags",                                           the tags for routing: of the content, once it was
--                                                                 seen
--               "channels": [{"channel_id", "platform", "title", "profile_hash",
--                             "routed", "kept_by",                all reasons against the channel, by name
--                             "facts",                            the settings that kept_by and waits_for refer to
--                             "twin": null | {"delivery_id", "status", "until"},
--                             "waits_for", "opens_at"}],          opens_at: null is never
--               "profiles": […]}                                  of missing_profiles: all that it is routed to
CREATE OR REPLACE FUNCTION preview_post(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_post jsonb,
    p_payload_hash text
)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _now timestamptz := clock_timestamp();
    _tags text[] := ARRAY(SELECT jsonb_array_elements_text(p_post -> 'tags'));
    _hinted text[] := ARRAY(SELECT jsonb_array_elements_text(p_post #> '{routing,channels}'));
    _hinted_tags text[] := ARRAY(SELECT jsonb_array_elements_text(p_post #> '{routing,channel_tags}'));
    _has_media boolean := p_post #>> '{payload,type}' = 'media';
    _scheduled_for timestamptz := (p_post ->> 'scheduled_for')::timestamptz;
    _source_ref text := p_post ->> 'source_ref';
    _endpoint record;
    _receipt jsonb;
    _message_id uuid;
    _first_tags text[];
    _channels jsonb;
BEGIN
    SELECT w.status, e.hash_drop_window_sec, room.wait
    INTO _endpoint
    FROM workspace_endpoints e
    JOIN workspaces w USING (workspace_id)
    LEFT JOIN ingress_gates g USING (workspace_id, endpoint_id)
    CROSS JOIN LATERAL (SELECT rate_step(e.ingress_rps) AS step) AS rate
    CROSS JOIN LATERAL (
        SELECT CASE WHEN rate.step > interval '0' THEN
            greatest(g.full_until, _now) + rate.step - _now - greatest(interval '1 second', rate.step)
        END AS wait
    ) AS room
    WHERE e.workspace_id = p_workspace_id
      AND e.endpoint_id = p_endpoint_id;

    SELECT jsonb_build_object('of', CASE WHEN _source_ref IS NULL THEN 'payload' ELSE 'source_ref' END,
                              'run_id', r.run_id, 'until', r.until)
    INTO _receipt
    FROM (
        SELECT r.run_id, r.received_at + make_interval(secs => _endpoint.hash_drop_window_sec) AS until
        FROM ingress_receipts r
        WHERE _source_ref IS NULL
          AND r.workspace_id = p_workspace_id
          AND r.endpoint_id = p_endpoint_id
          AND r.payload_hash = p_payload_hash
          AND r.received_at > _now - make_interval(secs => _endpoint.hash_drop_window_sec)
        UNION ALL
        SELECT r.run_id, r.expires_at
        FROM ingress_receipts r
        WHERE r.workspace_id = p_workspace_id
          AND r.endpoint_id = p_endpoint_id
          AND r.source_ref = _source_ref
    ) AS r
    ORDER BY r.until DESC
    LIMIT 1;

    SELECT m.message_id, m.tags
    INTO _message_id, _first_tags
    FROM messages m
    WHERE m.workspace_id = p_workspace_id
      AND m.hash_version = (p_post ->> 'hash_version')::int
      AND m.content_hash = p_post ->> 'content_hash';
    IF NOT p_post ? 'request'
       OR EXISTS (SELECT 1 FROM routed_channels(p_workspace_id, _tags, _hinted, _hinted_tags, _has_media)) THEN
        _tags := coalesce(_first_tags, _tags);
    END IF;

    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'channel_id', c.channel_id, 'platform', c.platform, 'title', c.title,
        'profile_hash', c.profile_hash, 'routed', r.channel_id IS NOT NULL, 'kept_by', route.kept_by,
        'facts', jsonb_build_object('route_filter', c.route_filter, 'send_mode', c.send_mode, 'tags', c.tags,
                                    'paused_until', c.paused_until, 'cooled_until', gate.cooled_until),
        'twin', CASE WHEN r.channel_id IS NOT NULL THEN twin.shown END,
        'waits_for', wait.waits_for,
        'opens_at', CASE WHEN isfinite(wait.opens_at) THEN wait.opens_at END
    ) ORDER BY c.platform, c.title, c.channel_id), '[]')
    INTO _channels
    FROM channels c
    LEFT JOIN platform_limits g USING (workspace_id, platform, rate_group)
    LEFT JOIN routed_channels(p_workspace_id, _tags, _hinted, _hinted_tags, _has_media) AS r USING (channel_id)
    CROSS JOIN LATERAL (
        SELECT array_remove(ARRAY[
            CASE WHEN NOT c.enabled THEN 'disabled' END,
            CASE WHEN NOT route_matches(_tags, c.route_filter - '{include_all,exclude}'::text[]) THEN 'include_any' END,
            CASE WHEN NOT route_matches(_tags, c.route_filter - '{include_any,exclude}'::text[]) THEN 'include_all' END,
            CASE WHEN NOT route_matches(_tags, c.route_filter - '{include_any,include_all}'::text[]) THEN 'exclude' END,
            CASE WHEN c.send_mode <> 'mixed' AND (c.send_mode = 'media') <> _has_media THEN 'send_mode' END,
            CASE WHEN _hinted <> '{}' AND c.channel_id::text <> ALL (_hinted) THEN 'routing.channels' END,
            CASE WHEN _hinted_tags <> '{}' AND NOT c.tags && _hinted_tags THEN 'routing.channel_tags' END
        ], NULL) AS kept_by
    ) AS route
    CROSS JOIN LATERAL (
        SELECT greatest(_now, _scheduled_for) AS due_at, greatest(c.next_allowed_at, g.next_allowed_at) AS cooled_until
    ) AS gate
    CROSS JOIN LATERAL (
        SELECT channel_opens_at(c, greatest(gate.due_at, gate.cooled_until)) AS opens_at,
               array_remove(ARRAY[
                   CASE WHEN _scheduled_for > _now THEN 'scheduled_for' END,
                   CASE WHEN c.paused_until > gate.due_at THEN 'pause' END,
                   CASE WHEN gate.cooled_until > gate.due_at THEN 'rate' END,
                   CASE WHEN c.window_mode = 'windowed'
                             AND window_opens_at(c.posting_window, c.timezone, greatest(c.paused_until, gate.due_at))
                                 > greatest(c.paused_until, gate.due_at) THEN 'window' END
               ], NULL) AS waits_for
    ) AS wait
    LEFT JOIN LATERAL (
        SELECT jsonb_build_object('delivery_id', d.delivery_id, 'status', d.status, 'until', d.until) AS shown
        FROM (
            SELECT d.delivery_id, d.status, CASE WHEN d.status = 'sent' THEN
                       coalesce(d.sent_at, d.updated_at) + dedup_window(c.dedup_ttl_hours)
                   END AS until
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.message_id = _message_id
              AND d.channel_id = c.channel_id
              AND is_twin(d.status, coalesce(d.sent_at, d.updated_at), c.dedup_ttl_hours, _now)
        ) AS d
        ORDER BY d.until DESC NULLS FIRST
        LIMIT 1
    ) AS twin ON true
    WHERE c.workspace_id = p_workspace_id;

    RETURN jsonb_build_object(
        'workspace_status', _endpoint.status,
        'receipt', _receipt,
        'retry_after_ms', CASE WHEN _endpoint.wait > interval '0'
                               THEN ceil(extract(epoch FROM _endpoint.wait) * 1000) END,
        'message_id', _message_id,
        'tags', to_jsonb(_tags),
        'channels', _channels,
        'profiles', missing_profiles(p_workspace_id, (parse_posts(jsonb_build_array(p_post || jsonb_build_object('tags', _tags))))[1]));
END $$;
