-- disable_channels(workspace_id, channel_id | rate_group, operator, reason, platform) -> one verdict per channel
--
-- Nothing is sent there, and nothing new is routed there, until enable_channels. The queue is kept (view quarantine).
-- A send that has begun continues.
--
-- platform     narrows the rate group to one platform
-- Verdicts     disabled, unchanged (it was disabled), not_found
-- Appends      channel_disabled, manual: true
-- Locks        channels by key
-- Raises       AP010 without operator or reason, AP011 unless one channel or one rate group is named.
CREATE OR REPLACE FUNCTION disable_channels(
    p_workspace_id uuid,
    p_channel_id uuid,
    p_rate_group text,
    p_operator text,
    p_reason text,
    p_platform text DEFAULT NULL
)
RETURNS TABLE (channel_id uuid, verdict text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _channels uuid[] := channels_of(p_workspace_id, p_channel_id, p_rate_group, p_platform);
BEGIN
    PERFORM 1
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = ANY (_channels)
    ORDER BY c.channel_id
    FOR NO KEY UPDATE;

    RETURN QUERY
    WITH disabled AS (
        UPDATE channels c
        SET enabled = false,
            updated_at = clock_timestamp()
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = ANY (_channels)
          AND c.enabled
        RETURNING c.channel_id
    ), told AS (
        INSERT INTO events (workspace_id, channel_id, action, meta)
        SELECT p_workspace_id, d.channel_id, 'channel_disabled',
               event_meta(NULL, NULL, _signature || jsonb_build_object(
                   'manual', true, 'rate_group', p_rate_group, 'platform', p_platform))
        FROM disabled d
        ORDER BY d.channel_id
    )
    SELECT c.channel_id, CASE WHEN d.channel_id IS NULL THEN 'unchanged' ELSE 'disabled' END
    FROM unnest(_channels) AS c (channel_id)
    LEFT JOIN disabled d USING (channel_id)
    UNION ALL
    SELECT p_channel_id, 'not_found'
    WHERE p_channel_id IS NOT NULL AND _channels = '{}';
END $$;
