-- assign_slots(workspaces, channels, groups, limit, most, tolerance, now) -> the deliveries to send, each with its slot
--
-- Chooses under the rates of the channels and of their rate groups, then advances the gates of both. Order: the first
-- delivery of each channel, then the second of each, and so on; among equals the channel that was served longest ago
-- goes first. Of several workspaces each gets one before any gets a second. One slot is one provider call: the first of
-- a delivery. For later calls the sender calls take_slot.
--
-- A publication is the last that its channel gives to a claim, and closes it for longer: see publication_step.
--
-- workspaces, channels, groups   of ready_channels, row by row
-- limit, most              how many deliveries of one workspace, and of all of them together
-- taken_in, taken, slots   the deliveries in order: workspace, delivery and slot of each
-- counts                   row by row, for the given channels: how many deliveries were taken
-- more, tight              the same: whether more waits, and whether max_parallel leaves no place
-- Changes   channels.next_allowed_at, platform_limits.next_allowed_at; only gates that gave a slot are written
-- Locks     none: the caller holds the groups and the channels
CREATE OR REPLACE FUNCTION assign_slots(
    p_workspaces uuid[],
    p_channels uuid[],
    p_groups tid[],
    p_limit int,
    p_most int,
    p_tolerance interval,
    p_now timestamptz,
    OUT taken_in uuid[],
    OUT taken uuid[],
    OUT slots timestamptz[],
    OUT counts int[],
    OUT more boolean[],
    OUT tight boolean[]
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    WITH open_channels AS MATERIALIZED (
        SELECT o.*,
               row_number() OVER (ORDER BY o.next_due_at, o.workspace_id, o.channel_id) AS turn,
               q.waiting, array_position(q.slow, true) AS slow_nth
        FROM (
            SELECT p.nth AS channel, p.workspace_id, p.channel_id, c.place, c.base, c.step, d.next_due_at, d.low_water,
                   p.group_place, g.base AS group_base, g.step AS group_step, g.room AS group_room,
                   c.max_parallel - f.flying AS free,
                   least(c.max_parallel - f.flying, p.share, c.room, g.room) AS places
            FROM (
                SELECT p.*, (p_limit + count(*) OVER w - 1) / count(*) OVER w AS share
                FROM unnest(p_workspaces, p_channels, p_groups)
                    WITH ORDINALITY AS p (workspace_id, channel_id, group_place, nth)
                WINDOW w AS (PARTITION BY p.workspace_id)
            ) AS p
            CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
                SELECT c.ctid AS place, c.platform, c.rate_group, c.max_parallel, gate.base, gate.step, gate.room
                FROM channels c
                CROSS JOIN LATERAL slot_gate(c.next_allowed_at, c.rate_rps, p_now, p_tolerance) AS gate
                WHERE c.workspace_id = p.workspace_id
                  AND c.channel_id = p.channel_id
                  AND gate.room > 0
                  AND channel_opens_at(c, p_now) <= p_now
                OFFSET 0
            ) AS c
            CROSS JOIN LATERAL (
                SELECT g.platform, g.rate_group, gate.base, gate.step, gate.room
                FROM platform_limits g
                CROSS JOIN LATERAL slot_gate(g.next_allowed_at, g.rate_rps, p_now, p_tolerance) AS gate
                WHERE g.ctid = p.group_place
                OFFSET 0
            ) AS g
            CROSS JOIN LATERAL (
                SELECT d.next_due_at, d.low_water
                FROM channel_due d
                WHERE d.workspace_id = p.workspace_id
                  AND d.channel_id = p.channel_id
                OFFSET 0
            ) AS d
            CROSS JOIN LATERAL (
                SELECT coalesce(sum(CASE k.side WHEN 'started' THEN k.total ELSE -k.total END), 0)::int AS flying
                FROM channel_counters k
                WHERE k.workspace_id = p.workspace_id
                  AND k.channel_id = p.channel_id
            ) AS f
            WHERE g.platform = c.platform -- else it has moved to another group, which may be another claim's
              AND g.rate_group = c.rate_group
        ) AS o
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(q.delivery_id), '{}') AS waiting, array_agg(q.slow) AS slow
            FROM (
                SELECT q.delivery_id, q.slow
                FROM delivery_queue q
                WHERE q.workspace_id = o.workspace_id
                  AND q.channel_id = o.channel_id
                  AND NOT q.asleep
                  AND q.sort_at >= o.low_water
                  AND q.claim_token IS NULL
                ORDER BY q.sort_at, q.delivery_id
                LIMIT CASE WHEN o.places > 0 THEN o.places + 1 ELSE 0 END -- one more shows whether anything is left
            ) AS q
        ) AS q
    ), chosen AS (
        SELECT o.channel, o.workspace_id, o.place, o.step, o.group_place, o.group_base, o.group_step, o.group_room,
               o.turn, q.delivery_id, q.nth, o.slow_nth = q.nth AS is_slow,
               o.base + (q.nth - 1) * o.step AS own_slot,
               row_number() OVER (PARTITION BY o.group_place ORDER BY q.nth, o.turn) AS group_nth
        FROM open_channels o
        CROSS JOIN LATERAL unnest(o.waiting[:least(o.places, o.slow_nth)::int]) WITH ORDINALITY AS q (delivery_id, nth)
    ), slotted AS MATERIALIZED (
        SELECT c.*, greatest(c.own_slot, c.group_base + (c.group_nth - 1) * c.group_step) AS slot_at
        FROM (
            SELECT c.*, row_number() OVER (PARTITION BY c.workspace_id ORDER BY c.nth, c.turn) AS workspace_nth
            FROM chosen c
            WHERE c.group_nth <= c.group_room
        ) AS c
        WHERE c.workspace_nth <= p_limit
        ORDER BY c.workspace_nth, c.turn
        LIMIT p_most
    ), served AS MATERIALIZED (
        SELECT s.channel, s.place, count(*)::int AS taken, max(s.slot_at + s.after) AS gate,
               bool_or(s.after > interval '0') AS is_limited
        FROM (
            SELECT s.*, CASE WHEN s.is_slow THEN publication_step(s.step) ELSE s.step END AS after FROM slotted s
        ) AS s
        GROUP BY s.channel, s.place
    ), channel_gates AS (
        UPDATE channels c
        SET next_allowed_at = s.gate
        FROM served s
        WHERE c.ctid = s.place
          AND s.is_limited
    ), group_gates AS (
        UPDATE platform_limits g
        SET next_allowed_at = s.gate,
            updated_at = p_now
        FROM (
            SELECT group_place, group_base + count(*) * group_step AS gate
            FROM slotted
            WHERE group_step > interval '0'
            GROUP BY group_place, group_base, group_step
        ) AS s
        WHERE g.ctid = s.group_place
    ), looked_at AS MATERIALIZED (
        -- Grouped, not joined: a planner that estimates one row for each side would compare each with each.
        SELECT l.channel, sum(l.taken)::int AS taken, sum(l.waits) > sum(l.taken) AS more,
               coalesce(max(l.free) <= sum(l.taken), false) AS tight
        FROM (
            SELECT n AS channel, 0 AS taken, 0 AS waits, NULL::int AS free
            FROM generate_series(1, cardinality(p_channels)) AS n
            UNION ALL
            SELECT o.channel, 0, cardinality(o.waiting), o.free FROM open_channels o
            UNION ALL
            SELECT s.channel, s.taken, 0, NULL FROM served s
        ) AS l
        GROUP BY l.channel
        ORDER BY l.channel
    )
    SELECT ARRAY(SELECT s.workspace_id FROM slotted s),
           ARRAY(SELECT s.delivery_id FROM slotted s),
           ARRAY(SELECT s.slot_at FROM slotted s),
           ARRAY(SELECT l.taken FROM looked_at l),
           ARRAY(SELECT l.more FROM looked_at l),
           ARRAY(SELECT l.tight FROM looked_at l)
    INTO taken_in, taken, slots, counts, more, tight;
END $$;
