-- pause_channels(workspace_id, channel_id | rate_group, operator, reason, for, platform) -> one verdict per channel
--
-- Nothing is sent there for this long; the queue is kept (view quarantine). A send that has begun continues. A pause is
-- never shortened: a longer one stays, and resume_channels ends either.
--
-- for          null: until an operator resumes it
-- platform     narrows the rate group to one platform
-- Verdicts     paused, unchanged (a pause at least as long exists), not_found
-- Appends      channel_paused, manual: true
-- Locks        channels by key
-- Raises       AP010 without operator or reason, AP011 unless one channel or one rate group is named, or when the
--              pause is not positive.
CREATE OR REPLACE FUNCTION pause_channels(
    p_workspace_id uuid,
    p_channel_id uuid,
    p_rate_group text,
    p_operator text,
    p_reason text,
    p_for interval DEFAULT '1 hour',
    p_platform text DEFAULT NULL
)
RETURNS TABLE (channel_id uuid, verdict text, paused_until timestamptz)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _channels uuid[] := channels_of(p_workspace_id, p_channel_id, p_rate_group, p_platform);
    _until timestamptz;
BEGIN
    IF p_for <= interval '0' THEN
        RAISE EXCEPTION 'a pause must be longer than 0, not %', p_for USING ERRCODE = 'AP011';
    END IF;

    PERFORM 1
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = ANY (_channels)
    ORDER BY c.channel_id
    FOR NO KEY UPDATE;
    _until := coalesce(clock_timestamp() + p_for, 'infinity');

    RETURN QUERY
    WITH paused AS (
        UPDATE channels c
        SET paused_until = _until,
            updated_at = clock_timestamp()
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = ANY (_channels)
          AND coalesce(c.paused_until, '-infinity') < _until
        RETURNING c.channel_id
    ), told AS (
        INSERT INTO events (workspace_id, channel_id, action, meta)
        SELECT p_workspace_id, p.channel_id, 'channel_paused',
               event_meta(NULL, NULL, _signature || jsonb_build_object(
                   'manual', true, 'rate_group', p_rate_group, 'platform', p_platform,
                   'paused_until', _until))
        FROM paused p
        ORDER BY p.channel_id
    )
    SELECT c.channel_id,
           CASE WHEN p.channel_id IS NULL THEN 'unchanged' ELSE 'paused' END,
           CASE WHEN p.channel_id IS NULL THEN c.paused_until ELSE _until END
    FROM channels c
    LEFT JOIN paused p USING (channel_id)
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = ANY (_channels)
    UNION ALL
    SELECT p_channel_id, 'not_found', NULL
    WHERE p_channel_id IS NOT NULL AND _channels = '{}';
END $$;
