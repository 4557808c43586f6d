-- open_channels(workspace_id, channel_id | rate_group, operator, reason, enable, platform) -> one verdict per channel
--
-- The work of resume_channels and enable_channels. A channel that opens first applies its catch-up policy to the
-- backlog (catch_up_excess), so the next claim finds only what is still worth sending.
--
-- enable       false: the pause ends. true: the pause and the disable end, and the error streak is reset.
-- platform     narrows the rate group to one platform
-- Verdicts     resumed, enabled; still_disabled (the pause has ended, but the channel is disabled: enable it);
--              unchanged (there was nothing to end); not_found. `dropped` is what the catch-up left out.
-- Changes      what is dropped: see drop_excess
-- Appends      catch_up_dropped per delivery (result ok: nothing failed), channel_enabled, manual: true, per channel
-- Locks        messages of what may be dropped (lock_excess), then channels, deliveries and their triggers' tables:
--              each by key
-- Raises       AP010 without operator or reason, AP011 unless one channel or one rate group is named.
CREATE OR REPLACE FUNCTION open_channels(
    p_workspace_id uuid,
    p_channel_id uuid,
    p_rate_group text,
    p_operator text,
    p_reason text,
    p_enable boolean,
    p_platform text DEFAULT NULL
)
RETURNS TABLE (channel_id uuid, verdict text, dropped bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason) || jsonb_build_object('manual', true);
    _channels uuid[] := channels_of(p_workspace_id, p_channel_id, p_rate_group, p_platform);
    _now timestamptz := clock_timestamp();
    _messages uuid[];
    _opening uuid[];
    _dropped jsonb;
BEGIN
    _messages := lock_excess(p_workspace_id, _channels, _now);
    PERFORM 1
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = ANY (_channels)
    ORDER BY c.channel_id
    FOR NO KEY UPDATE;
    _now := clock_timestamp();

    SELECT array_agg(c.channel_id)
    INTO _opening
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = ANY (_channels)
      AND (p_enable OR c.enabled)
      AND (NOT c.enabled
           OR c.paused_until > _now
           OR (p_enable AND c.error_streak > 0 AND c.paused_until IS NOT NULL)); -- expired, no claim yet

    _dropped := drop_excess(p_workspace_id, _opening, _messages, NULL, _signature, _now);

    -- Last, because it makes the channels due, and channel_due is locked after deliveries everywhere; by key, because
    -- an UPDATE of several channels does not guarantee an order.
    PERFORM 1
    FROM channel_due d
    WHERE d.workspace_id = p_workspace_id
      AND d.channel_id = ANY (_channels)
    ORDER BY d.channel_id
    FOR NO KEY UPDATE;
    RETURN QUERY
    WITH opened AS (
        UPDATE channels c
        SET paused_until = NULL,
            enabled = c.enabled OR p_enable,
            error_streak = CASE WHEN p_enable THEN 0 ELSE c.error_streak END,
            updated_at = _now
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = ANY (_channels)
          AND (c.paused_until > _now OR (p_enable AND (NOT c.enabled OR c.error_streak > 0)))
        RETURNING c.channel_id, c.enabled
    ), told AS (
        INSERT INTO events (workspace_id, channel_id, action, meta)
        SELECT p_workspace_id, o.channel_id, 'channel_enabled',
               event_meta(NULL, NULL, _signature || jsonb_build_object(
                   'how', CASE WHEN p_enable THEN 'enable' ELSE 'resume' END, 'enabled', o.enabled,
                   'rate_group', p_rate_group, 'platform', p_platform, 'dropped', _dropped -> o.channel_id::text))
        FROM opened o
        ORDER BY o.channel_id
    )
    SELECT c.channel_id,
           CASE
               WHEN o.channel_id IS NULL THEN 'unchanged'
               WHEN NOT o.enabled THEN 'still_disabled'
               WHEN p_enable THEN 'enabled'
               ELSE 'resumed'
           END,
           coalesce((_dropped ->> c.channel_id::text)::bigint, 0)
    FROM unnest(_channels) AS c (channel_id)
    LEFT JOIN opened o USING (channel_id)
    UNION ALL
    SELECT p_channel_id, 'not_found', 0
    WHERE p_channel_id IS NOT NULL AND _channels = '{}';
END $$;
