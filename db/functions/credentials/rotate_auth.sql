-- rotate_auth(workspace_id, channel_id, auth_ref, rate_group, operator, reason, force) -> {"verdict", …}
--
-- Points a channel at another credential, and at another rate group when one is given: another token has its own limit
-- at the provider. A new group starts with the limit of the old one; where that has none, with the default of the
-- table.
--
-- Verdicts     rotated    with "old_auth_ref", "rate_group", and "bound": whether the new ref has a secret
--              sending    "sending" deliveries are in flight with the old credential; pause, wait, call again, or force
--              not_found
-- Appends      auth_rotated with both refs and both groups; never a secret
-- Locks        platform_limits, channels: each by key. While the channel is held no claim starts there, so no send
--              starts until the new credential is stored.
-- Raises       AP010 without operator or reason, AP011 without a new ref.
CREATE OR REPLACE FUNCTION rotate_auth(
    p_workspace_id uuid,
    p_channel_id uuid,
    p_auth_ref text,
    p_rate_group text,
    p_operator text,
    p_reason text,
    p_force boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _channel record;
    _sending bigint;
    _now timestamptz;
BEGIN
    IF coalesce(p_auth_ref, '') = '' OR p_rate_group = '' THEN
        RAISE EXCEPTION 'auth_ref must not be null: it is the new one; rate_group may be null to keep the old one'
            USING ERRCODE = 'AP011';
    END IF;

    INSERT INTO platform_limits (workspace_id, platform, rate_group, rate_rps)
    SELECT g.workspace_id, g.platform, p_rate_group, g.rate_rps
    FROM channels c
    JOIN platform_limits g
      ON g.workspace_id = c.workspace_id
     AND g.platform = c.platform
     AND g.rate_group = c.rate_group
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = p_channel_id
      AND p_rate_group IS NOT NULL
      AND g.rate_rps > 0
    ON CONFLICT DO NOTHING;

    PERFORM 1
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = p_channel_id
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('verdict', 'not_found');
    END IF;
    _now := clock_timestamp();

    SELECT c.platform, c.rate_group, coalesce(a.auth_ref, c.auth_ref) AS auth_ref
    INTO _channel
    FROM channels c
    LEFT JOIN channel_auth a USING (workspace_id, channel_id)
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = p_channel_id;
    SELECT sum(CASE k.side WHEN 'started' THEN k.total ELSE -k.total END)
    INTO _sending
    FROM channel_counters k
    WHERE k.workspace_id = p_workspace_id
      AND k.channel_id = p_channel_id;
    IF _sending > 0 AND NOT p_force THEN
        RETURN jsonb_build_object('verdict', 'sending', 'sending', _sending);
    END IF;

    INSERT INTO channel_auth (workspace_id, channel_id, auth_ref, rotated_at, updated_at)
    VALUES (p_workspace_id, p_channel_id, p_auth_ref, _now, _now)
    ON CONFLICT (workspace_id, channel_id) DO UPDATE
    SET auth_ref = excluded.auth_ref,
        rotated_at = excluded.rotated_at,
        updated_at = excluded.updated_at;
    UPDATE channels c
    SET auth_ref = p_auth_ref,
        rate_group = coalesce(p_rate_group, c.rate_group),
        updated_at = _now
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = p_channel_id;

    INSERT INTO events (workspace_id, channel_id, action, meta)
    VALUES (p_workspace_id, p_channel_id, 'auth_rotated', event_meta(NULL, NULL, _signature || jsonb_build_object(
        'old_auth_ref', _channel.auth_ref, 'new_auth_ref', p_auth_ref,
        'old_rate_group', _channel.rate_group, 'new_rate_group', coalesce(p_rate_group, _channel.rate_group),
        'sending', nullif(_sending, 0))));

    RETURN jsonb_build_object(
        'verdict', 'rotated',
        'old_auth_ref', _channel.auth_ref,
        'rate_group', coalesce(p_rate_group, _channel.rate_group),
        'bound', EXISTS (
            SELECT 1
            FROM credential_bindings b
            WHERE b.workspace_id = p_workspace_id
              AND b.auth_ref = p_auth_ref
              AND b.platform = _channel.platform
        ));
END $$;
