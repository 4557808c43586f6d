-- claim_deliveries(workspace_id, run_id, limit) -> the deliveries to send now, already `sending`
--
-- Claims due deliveries under the rates of their channel and of its rate group, oldest first in a channel, channels in
-- turn inside a group. One slot is one provider call. `next_due_at` on every row is when another claim is worthwhile;
-- when no row is returned, call next_due_at().
--
-- Guarantees   status sending, attempt + 1, a fresh claim_token, sending_lease_until in the future, send_attempt
--              written: all before the caller sees the row
-- Shared       what many rows have in common, on the first row only, as JSON: {"plans": {rendering_id: what to send},
--              "channels": {channel_id: {platform, target_id, auth_ref, rate_group, settings, pace}}};
--              the pace is the minimum distance between two calls of a delivery, in seconds
-- Verify       the last attempt may have arrived, and the channel wants a check with the platform before another
-- Empty        when the workspace is not active, another claim is running in it (see note_refused_claim), or nothing
--              may be sent yet
-- Cost         grows with what is claimed: only channels that are due by channel_due are read, each once
-- Changes      queued | retry -> sending; where a pause has expired, what the catch-up policy drops: see end_pauses
-- Appends      send_attempt
-- Locks        platform_limits, channels, deliveries: each by key. After platform_limits it skips what others hold,
--              except for what end_pauses locks.
-- Steps        end_pauses, ready_channels, wake_sleepers, assign_slots, reschedule_channels, claim_shared, and the
--              UPDATE here
--
-- How a channel is closed. What a claim reads in the queue may be older than a delivery that is being enqueued. So a
-- channel is declared empty only under FOR UPDATE on its channel_due, and only by a statement that starts after that
-- lock. A transaction that adds a delivery there cannot share the lock: deliveries_after_insert and
-- deliveries_after_update hold the row FOR KEY SHARE until they commit. Likewise a channel is declared full only while
-- its 'ended' counter is held.
CREATE OR REPLACE FUNCTION claim_deliveries(
    p_workspace_id uuid,
    p_run_id uuid,
    p_limit int,
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
    _token uuid := gen_random_uuid();
    _drawn text := new_id();
    _first_id bigint := id_start(_drawn);
    _ids text := left(_drawn, 24);
    _run text := p_run_id::text;
    _resting uuid[];
    _piled uuid[];
    _channels uuid[];
    _taken uuid[] := '{}';
    _slots timestamptz[];
    _places tid[];
    _renderings uuid[];
    _shared text;
    _counts int[];
    _more boolean[];
    _tight boolean[];
    _next timestamptz;
BEGIN
    IF NOT pg_try_advisory_xact_lock(claim_lock(p_workspace_id)) THEN
        PERFORM note_refused_claim(p_workspace_id);
        RETURN;
    END IF;
    PERFORM 1 FROM workspaces w WHERE w.workspace_id = p_workspace_id AND w.status = 'active';
    IF NOT FOUND THEN
        RETURN;
    END IF;

    _resting := ARRAY(
        SELECT c.channel_id
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND c.enabled
          AND c.paused_until <= coalesce(p_now, clock_timestamp())
          AND c.catch_up ->> 'policy' <> 'all'
    );
    IF _resting <> '{}' THEN
        _piled := lock_excess(p_workspace_id, _resting, coalesce(p_now, clock_timestamp()));
    END IF;

    -- The clock is read after the rate groups are locked.
    PERFORM 1
    FROM platform_limits g
    WHERE g.workspace_id = p_workspace_id
    ORDER BY g.platform, g.rate_group
    FOR UPDATE;
    _now := coalesce(p_now, clock_timestamp());
    IF _resting <> '{}' THEN
        PERFORM end_pauses(p_workspace_id, p_run_id, _resting, _piled, _now);
    END IF;

    _channels := ready_channels(p_workspace_id, p_limit, p_tolerance, _now);
    IF _channels IS NOT NULL THEN
        PERFORM wake_sleepers(p_workspace_id, _channels, _now);
        SELECT c.taken, c.slots, c.channels, c.counts, c.more, c.tight
        INTO _taken, _slots, _channels, _counts, _more, _tight
        FROM assign_slots(p_workspace_id, _channels, p_limit, p_tolerance, _now) AS c;
        PERFORM reschedule_channels(p_workspace_id, _channels, _counts, _more, _tight, _now);
    END IF;

    IF _taken <> '{}' THEN
        -- Locked by key, then updated by place: see lock_claims. No lock is waited for, so the order is that of the
        -- turns.
        SELECT array_agg(d.place), array_agg(t.slot_at), array_agg(DISTINCT d.rendering_id)
        INTO _places, _slots, _renderings
        FROM unnest(_taken, _slots) AS t (delivery_id, slot_at)
        CROSS JOIN LATERAL (
            SELECT d.ctid AS place, d.rendering_id
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = t.delivery_id
              AND d.status IN ('queued', 'retry')
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS d;
        IF coalesce(cardinality(_places), 0) < cardinality(_taken) THEN
            -- A chosen delivery is held or was moved by another transaction: its slot is lost, its turn is not. Nor is
            -- its place: a channel that was full with it alone has nothing in flight whose end would make it due. Done
            -- before next_due_at is read: the caller sleeps until then.
            WITH again AS MATERIALIZED (
                SELECT d.channel_id
                FROM unnest(_channels, _counts) AS p (channel_id, taken)
                JOIN channel_due d
                  ON d.workspace_id = p_workspace_id
                 AND d.channel_id = p.channel_id
                WHERE p.taken > 0
                ORDER BY d.channel_id
                FOR NO KEY UPDATE OF d SKIP LOCKED -- a held row was not rescheduled: it is still due
            )
            UPDATE channel_due d
            SET next_due_at = least(d.next_due_at, _now + interval '5 milliseconds'),
                waits_for_place = false
            FROM again a
            WHERE d.workspace_id = p_workspace_id
              AND d.channel_id = a.channel_id;
        END IF;
    END IF;

    _next := next_due_at(p_workspace_id);
    INSERT INTO workspace_due (workspace_id, last_claimed_at)
    VALUES (p_workspace_id, _now)
    ON CONFLICT (workspace_id) DO UPDATE
    SET last_claimed_at = excluded.last_claimed_at;
    IF _places IS NULL THEN
        RETURN;
    END IF;
    _shared := claim_shared(
        p_workspace_id,
        ARRAY(SELECT p.channel_id FROM unnest(_channels, _counts) AS p (channel_id, taken) WHERE p.taken > 0),
        _renderings
    );

    RETURN QUERY
    WITH took AS (
        UPDATE deliveries d
        SET status = 'sending',
            attempt = d.attempt + 1,
            claimed_at = _now,
            claim_token = _token,
            sending_started_at = _now,
            sending_lease_until = _now + p_lease,
            slot_at = h.slot_at,
            hold_reason = NULL,
            event_count = d.event_count + 1,
            updated_at = _now
        FROM unnest(_places, _slots) WITH ORDINALITY AS h (place, slot_at, turn)
        WHERE d.ctid = h.place
        RETURNING d.delivery_id, d.message_id, d.channel_id, d.rendering_id, d.attempt, d.slot_at, d.render_meta,
                  d.last_error, d.trace_id, d.traceparent, d.created_at, h.turn
    ), told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT id_in(_ids, _first_id + t.turn), p_workspace_id, t.delivery_id, t.message_id, t.channel_id,
               'send_attempt', t.attempt,
               jsonb_object(ARRAY['trace_id', t.trace_id, 'run_id', _run, 'idempotency_key', t.delivery_id::text,
                                  'slot_at', btrim(to_json(t.slot_at)::text, '"')])
        FROM took t
    )
    SELECT t.delivery_id, t.message_id, t.channel_id, t.rendering_id, t.attempt, _token, _now + p_lease, t.slot_at,
           t.render_meta,
           CASE WHEN t.last_error @> '{"ambiguous": true}' THEN (
               SELECT c.on_ambiguous = 'verify'
               FROM channels c
               WHERE c.workspace_id = p_workspace_id
                 AND c.channel_id = t.channel_id
           ) ELSE false END,
           t.trace_id, t.traceparent, t.created_at, _next,
           CASE WHEN t.turn = 1 THEN _shared END
    FROM took t
    ORDER BY t.turn;
END $$;
