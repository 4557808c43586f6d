-- claim_trial(workspace_id, platform, rate_group, run_id) -> the one delivery that tries the platform, already `sending`
--
-- For the dispatcher whose probe was answered: a row as claim_deliveries returns it, or none when nothing may be sent yet
-- (take_probes then names the group as soon as something is due). How the delivery ends decides about the circuit: see
-- settle_circuits. Until then nothing else of the group is claimed.
--
-- Guarantees   those of claim_deliveries; and at most one delivery of a half circuit is with a worker
-- Changes      queued | retry -> sending; platform_limits, channels: the slot is charged as any other
-- Appends      send_attempt
-- Steps        trial_delivery, start_sending, claim_shared
-- Locks        platform_limits, channels, deliveries: each by key; the last two SKIP LOCKED
CREATE OR REPLACE FUNCTION claim_trial(
    p_workspace_id uuid,
    p_platform text,
    p_rate_group text,
    p_run_id uuid,
    p_lease interval DEFAULT '300 seconds',
    p_tolerance interval DEFAULT '50 milliseconds',
    p_now timestamptz DEFAULT NULL
)
RETURNS TABLE (
    delivery_id uuid,
    message_id uuid,
    channel_id uuid,
    rendering_id uuid,
    attempt int,
    claim_token uuid,
    sending_lease_until timestamptz,
    slot_at timestamptz,
    render_meta jsonb,
    verify boolean,
    trace_id text,
    traceparent text,
    created_at timestamptz,
    next_due_at timestamptz,
    shared text
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
    _group record;
    _channel record;
    _delivery uuid;
    _place tid;
    _token uuid := gen_random_uuid();
    _slot timestamptz;
BEGIN
    SELECT g.next_allowed_at, g.rate_rps
    INTO _group
    FROM platform_limits g
    JOIN workspaces w
      ON w.workspace_id = g.workspace_id
     AND w.status = 'active'
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = p_platform
      AND g.rate_group = p_rate_group
      AND g.circuit = 'half'
      AND g.trial IS NULL
    FOR UPDATE OF g;
    IF NOT FOUND THEN
        RETURN;
    END IF;

    _now := coalesce(p_now, clock_timestamp());
    PERFORM wake_sleepers(array_agg(p_workspace_id), array_agg(s.channel_id), _now)
    FROM (
        SELECT d.channel_id
        FROM channel_due d
        WHERE d.workspace_id = p_workspace_id
          AND d.platform = p_platform
          AND d.rate_group = p_rate_group
          AND d.next_due_at <= _now
          AND d.next_due_at < 'infinity'
        ORDER BY d.next_due_at
        LIMIT 64
    ) AS s;
    SELECT c.channel_id, t.delivery_id, gate.base AS slot_at, gate.step,
           group_gate.base AS group_slot, group_gate.step AS group_step
    INTO _channel
    FROM slot_gate(_group.next_allowed_at, _group.rate_rps, _now, p_tolerance) AS group_gate
    CROSS JOIN LATERAL trial_delivery(p_workspace_id, p_platform, p_rate_group, p_tolerance, _now) AS t
    CROSS JOIN LATERAL (
        SELECT c.channel_id, c.next_allowed_at, c.rate_rps
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = t.channel_id
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c
    CROSS JOIN LATERAL slot_gate(c.next_allowed_at, c.rate_rps, _now, p_tolerance) AS gate
    WHERE group_gate.room > 0
      AND gate.room > 0;
    IF NOT FOUND THEN
        RETURN;
    END IF;

    SELECT d.ctid
    INTO _place
    FROM deliveries d
    WHERE d.workspace_id = p_workspace_id
      AND d.delivery_id = _channel.delivery_id
      AND d.status IN ('queued', 'retry')
      AND (d.scheduled_for IS NULL OR d.scheduled_for <= _now + p_tolerance) -- not rescheduled meanwhile
    FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;

    _slot := greatest(_channel.slot_at, _channel.group_slot);
    UPDATE channels c
    SET next_allowed_at = _slot + _channel.step
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = _channel.channel_id
      AND _channel.step > interval '0';
    UPDATE platform_limits g
    SET next_allowed_at = CASE WHEN _channel.group_step > interval '0' THEN _slot + _channel.group_step
                               ELSE g.next_allowed_at END,
        trial = _channel.delivery_id,
        updated_at = _now
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = p_platform
      AND g.rate_group = p_rate_group;

    RETURN QUERY
    SELECT t.delivery_id, t.message_id, t.channel_id, t.rendering_id, t.attempt, _token, t.sending_lease_until,
           t.slot_at, t.render_meta, t.verify, t.trace_id, t.traceparent, t.created_at, NULL::timestamptz,
           claim_shared(ARRAY[p_workspace_id], ARRAY[t.channel_id], ARRAY[t.rendering_id])::text
    FROM start_sending(ARRAY[_place], ARRAY[_slot], _token, p_run_id, p_lease, _now, '{"trial": true}') AS t;
END $$;
