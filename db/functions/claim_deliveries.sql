-- claim_deliveries(workspace_id, run_id, limit) -> the deliveries to send now, already `sending`
--
-- Hands out due deliveries under the rates of their channel and of its token group, oldest first in a channel,
-- channels in turn inside a group. One slot is one provider call. `next_due_at` on every row is when another
-- call is worth it; when nothing is returned, ask next_due_at().
--
-- Guarantees   status sending, attempt + 1, a fresh claim_token, sending_lease_until in the future, send_attempt
--              written: all before the caller sees the row
-- Empty        when the workspace is not active, another claim is in it right now, or nothing may go out yet
-- Cost         follows what is claimed: only channels that channel_due calls due are looked at, each once
-- Changes      queued | retry -> sending
-- Appends      send_attempt
-- Locks        platform_limits, channels (FOR NO KEY UPDATE SKIP LOCKED), channel_due, deliveries: each by key.
--              After platform_limits it waits for nobody.
--
-- How a channel is closed. What a claim reads in the queue may be outdated by a delivery that is being
-- enqueued. So a channel is declared empty only under FOR UPDATE on its row, which no transaction can share
-- that has put a delivery there (the foreign key, and delivery_moved, hold it FOR KEY SHARE until they commit),
-- and only by a statement that starts after that lock. Likewise a channel is declared full only while its
-- 'ended' counter is held.
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
    pace interval,
    platform text,
    target_id text,
    auth_ref text,
    rate_group text,
    settings jsonb,
    render_meta jsonb,
    trace_id text,
    traceparent text,
    created_at timestamptz,
    next_due_at timestamptz
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
    _token uuid := gen_random_uuid();
    _groups jsonb;
    _channels uuid[];
    _blocked uuid[];
    _per_channel int;
    _taken uuid[];
    _slots timestamptz[];
    _served uuid[];
    _exhausted uuid[];
    _closable uuid[];
    _next timestamptz;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('claim:' || p_workspace_id, 0)) THEN
        RETURN;
    END IF;
    PERFORM 1 FROM workspaces w WHERE w.workspace_id = p_workspace_id AND w.status = 'active';
    IF NOT FOUND THEN
        RETURN;
    END IF;

    -- The token groups that have a channel due; their rows are locked in order, and only then is it "now".
    PERFORM 1
    FROM platform_limits g
    WHERE g.workspace_id = p_workspace_id
    ORDER BY g.platform, g.rate_group
    FOR UPDATE;
    _now := coalesce(p_now, clock_timestamp());

    SELECT jsonb_agg(to_jsonb(open))
    INTO _groups
    FROM (
        SELECT g.platform, g.rate_group, gate.base, gate.step,
               least(gate.room, p_limit) AS room
        FROM platform_limits g
        CROSS JOIN LATERAL slot_gate(g.next_allowed_at, g.rate_rps, _now, p_tolerance) AS gate
        WHERE g.workspace_id = p_workspace_id
          AND gate.room > 0
    ) AS open;

    -- The channels whose turn it is: as many as their group has room for, and a few more in case some of them
    -- turn out to be closed, full or empty.
    WITH candidates AS MATERIALIZED (
        SELECT due.channel_id
        FROM jsonb_to_recordset(_groups) AS g (platform text, rate_group text, room bigint)
        CROSS JOIN LATERAL (
            SELECT d.channel_id
            FROM channel_due d
            WHERE d.workspace_id = p_workspace_id
              AND d.platform = g.platform
              AND d.rate_group = g.rate_group
              AND d.next_due_at <= _now
            ORDER BY d.next_due_at
            LIMIT g.room + 16
        ) AS due
    ), locked AS MATERIALIZED (
        SELECT c.channel_id
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id IN (SELECT channel_id FROM candidates)
        ORDER BY c.channel_id
        FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT array_agg(d.channel_id)
    INTO _channels
    FROM (
        SELECT d.channel_id
        FROM channel_due d
        WHERE d.workspace_id = p_workspace_id
          AND d.channel_id IN (SELECT channel_id FROM locked)
        ORDER BY d.channel_id
        FOR UPDATE SKIP LOCKED
    ) AS d;

    IF _channels IS NOT NULL THEN
        PERFORM wake_sleepers(p_workspace_id, _channels, _now);

        -- Full channels wait for the commit that frees a place; unless one is being committed right now.
        SELECT array_agg(full_channels.channel_id)
        INTO _blocked
        FROM (
            SELECT ended.channel_id
            FROM channel_counters ended
            JOIN channel_counters started
              ON started.workspace_id = ended.workspace_id
             AND started.channel_id = ended.channel_id
             AND started.side = 'started'
            JOIN channels c
              ON c.workspace_id = ended.workspace_id
             AND c.channel_id = ended.channel_id
            WHERE ended.workspace_id = p_workspace_id
              AND ended.channel_id = ANY (_channels)
              AND ended.side = 'ended'
              AND started.total - ended.total >= c.max_parallel
            ORDER BY ended.channel_id
            FOR UPDATE OF ended SKIP LOCKED
        ) AS full_channels;

        _per_channel := greatest(1, ceil(p_limit::numeric / cardinality(_channels)));

        -- Choose jointly under both gates, then advance the gates by what was chosen.
        WITH groups AS MATERIALIZED (
            SELECT *
            FROM jsonb_to_recordset(_groups)
                AS g (platform text, rate_group text, base timestamptz, step interval, room bigint)
        ), open_channels AS MATERIALIZED (
            SELECT c.channel_id, c.platform, c.rate_group, d.next_due_at, gate.base, gate.step,
                   least(gate.room, _per_channel) AS room,
                   least(c.max_parallel - (started.total - ended.total), _per_channel) AS places
            FROM channels c
            JOIN channel_due d
              ON d.workspace_id = c.workspace_id
             AND d.channel_id = c.channel_id
            JOIN channel_counters started
              ON started.workspace_id = c.workspace_id
             AND started.channel_id = c.channel_id
             AND started.side = 'started'
            JOIN channel_counters ended
              ON ended.workspace_id = c.workspace_id
             AND ended.channel_id = c.channel_id
             AND ended.side = 'ended'
            CROSS JOIN LATERAL slot_gate(c.next_allowed_at, c.rate_rps, _now, p_tolerance) AS gate
            WHERE c.workspace_id = p_workspace_id
              AND c.channel_id = ANY (_channels)
              AND channel_opens_at(c, _now) <= _now
              AND gate.room > 0
        ), waiting AS MATERIALIZED (
            SELECT o.channel_id, o.platform, o.rate_group, o.next_due_at, o.base, o.step, o.room,
                   q.delivery_id, q.calls, q.nth,
                   sum(q.calls) OVER (PARTITION BY o.channel_id ORDER BY q.nth) - q.calls AS calls_before
            FROM open_channels o
            CROSS JOIN LATERAL (
                SELECT w.delivery_id, w.calls, row_number() OVER (ORDER BY w.sort_at, w.delivery_id) AS nth
                FROM (
                    SELECT q.delivery_id, q.calls, q.sort_at
                    FROM delivery_queue q
                    WHERE q.workspace_id = p_workspace_id
                      AND q.channel_id = o.channel_id
                      AND NOT q.asleep
                      AND q.claim_token IS NULL
                    ORDER BY q.sort_at, q.delivery_id
                    LIMIT greatest(o.places, 0)
                ) AS w
            ) AS q
        ), chosen AS MATERIALIZED (
            SELECT w.*,
                   g.base AS group_base, g.step AS group_step, g.room AS group_room,
                   sum(w.calls) OVER turns - w.calls AS group_calls_before,
                   row_number() OVER (ORDER BY w.nth, w.next_due_at, w.channel_id) AS turn
            FROM waiting w
            JOIN groups g
              ON g.platform = w.platform
             AND g.rate_group = w.rate_group
            WHERE w.calls_before < w.room
            WINDOW turns AS (PARTITION BY w.platform, w.rate_group ORDER BY w.nth, w.next_due_at, w.channel_id)
        ), slotted AS MATERIALIZED (
            SELECT c.*,
                   greatest(c.base + c.calls_before * c.step,
                            c.group_base + c.group_calls_before * c.group_step) AS slot_at
            FROM chosen c
            WHERE c.group_calls_before < c.group_room
              AND c.turn <= p_limit
        ), channel_gates AS (
            UPDATE channels c
            SET next_allowed_at = s.gate
            FROM (
                SELECT channel_id, max(slot_at + calls * step) AS gate
                FROM slotted
                WHERE step > interval '0'
                GROUP BY channel_id
            ) AS s
            WHERE c.workspace_id = p_workspace_id
              AND c.channel_id = s.channel_id
        ), group_gates AS (
            UPDATE platform_limits g
            SET next_allowed_at = s.gate,
                updated_at = _now
            FROM (
                SELECT platform, rate_group, group_base + sum(calls) * group_step AS gate
                FROM slotted
                WHERE group_step > interval '0'
                GROUP BY platform, rate_group, group_base, group_step
            ) AS s
            WHERE g.workspace_id = p_workspace_id
              AND g.platform = s.platform
              AND g.rate_group = s.rate_group
        )
        SELECT array_agg(s.delivery_id ORDER BY s.turn), array_agg(s.slot_at ORDER BY s.turn),
               array_agg(DISTINCT s.channel_id)
        INTO _taken, _slots, _served
        FROM slotted s;

        -- A row that somebody holds or has moved on is left out; its slot is lost, never its turn.
        WITH held AS MATERIALIZED (
            SELECT d.delivery_id
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = ANY (_taken)
              AND d.status IN ('queued', 'retry')
            ORDER BY d.delivery_id
            FOR UPDATE SKIP LOCKED
        )
        UPDATE deliveries d
        SET status = 'sending',
            attempt = d.attempt + 1,
            claimed_at = _now,
            claim_token = _token,
            sending_started_at = _now,
            sending_lease_until = _now + p_lease,
            slot_at = t.slot_at,
            event_count = d.event_count + 1,
            updated_at = _now
        FROM unnest(_taken, _slots) AS t (delivery_id, slot_at)
        JOIN held USING (delivery_id)
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = t.delivery_id;

        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT d.workspace_id, d.delivery_id, d.message_id, d.channel_id, 'send_attempt', d.attempt,
               jsonb_build_object('trace_id', d.trace_id, 'run_id', p_run_id,
                                  'idempotency_key', d.delivery_id, 'slot_at', d.slot_at)
        FROM unnest(_taken) WITH ORDINALITY AS t (delivery_id, turn)
        JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.delivery_id = t.delivery_id
         AND d.claim_token = _token
        ORDER BY t.turn;

        -- Channels with nothing left: try to close them. One that cannot be locked is being fed right now.
        SELECT array_agg(c.channel_id)
        INTO _exhausted
        FROM unnest(_channels) AS c (channel_id)
        WHERE NOT EXISTS (
            SELECT 1
            FROM delivery_queue q
            WHERE q.workspace_id = p_workspace_id
              AND q.channel_id = c.channel_id
              AND NOT q.asleep
              AND q.claim_token IS NULL
        );
        SELECT array_agg(c.channel_id)
        INTO _closable
        FROM (
            SELECT c.channel_id
            FROM channels c
            WHERE c.workspace_id = p_workspace_id
              AND c.channel_id = ANY (_exhausted)
            ORDER BY c.channel_id
            FOR UPDATE SKIP LOCKED
        ) AS c;

        PERFORM settle_channels(p_workspace_id, _channels, _served, _blocked, _closable, _now);
    END IF;

    _next := next_due_at(p_workspace_id);
    INSERT INTO workspace_due AS w (workspace_id, next_due_at, last_claimed_at)
    VALUES (p_workspace_id, _next, _now)
    ON CONFLICT (workspace_id) DO UPDATE
    SET next_due_at = excluded.next_due_at,
        last_claimed_at = excluded.last_claimed_at;

    RETURN QUERY
    SELECT d.delivery_id, d.message_id, d.channel_id, d.rendering_id, d.attempt, d.claim_token,
           d.sending_lease_until, d.slot_at,
           greatest(rate_step(c.rate_rps), rate_step(g.rate_rps)),
           c.platform, c.target_id, coalesce(a.auth_ref, c.auth_ref), c.rate_group, c.settings, d.render_meta,
           d.trace_id, d.traceparent, d.created_at, _next
    FROM unnest(_taken) WITH ORDINALITY AS t (delivery_id, turn)
    JOIN deliveries d
      ON d.workspace_id = p_workspace_id
     AND d.delivery_id = t.delivery_id
     AND d.claim_token = _token
    JOIN channels c
      ON c.workspace_id = d.workspace_id
     AND c.channel_id = d.channel_id
    JOIN platform_limits g
      ON g.workspace_id = c.workspace_id
     AND g.platform = c.platform
     AND g.rate_group = c.rate_group
    LEFT JOIN channel_auth a
      ON a.workspace_id = c.workspace_id
     AND a.channel_id = c.channel_id
    ORDER BY t.turn;
END $$;
