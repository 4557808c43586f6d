-- assign_slots(workspace_id, channel_ids, limit, tolerance, now) -> the deliveries to send now, each with its slot
--
-- Chooses under the rates of the channels and of their rate groups, then advances the gates of both. Order: the first
-- delivery of each channel, then the second of each, and so on; among equals the channel that was served longest ago
-- goes first. One slot is one provider call: the first of a delivery. For later calls the sender calls take_slot.
--
-- taken, slots             the deliveries in order, and the slot of each
-- channels, counts         all given channels, and how many deliveries were taken of each
-- more, tight              whether more waits in the channel, and whether max_parallel leaves no place in it
-- Changes   channels.next_allowed_at, platform_limits.next_allowed_at; only gates that gave a slot are written
-- Locks     none: the caller holds the groups and the channels
CREATE OR REPLACE FUNCTION assign_slots(
    p_workspace_id uuid,
    p_channel_ids uuid[],
    p_limit int,
    p_tolerance interval,
    p_now timestamptz,
    OUT taken uuid[],
    OUT slots timestamptz[],
    OUT channels uuid[],
    OUT counts int[],
    OUT more boolean[],
    OUT tight boolean[]
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _share int := (p_limit + cardinality(p_channel_ids) - 1) / cardinality(p_channel_ids);
BEGIN
    WITH groups AS MATERIALIZED (
        SELECT g.platform, g.rate_group, g.ctid AS group_place, gate.base, gate.step, gate.room
        FROM platform_limits g
        CROSS JOIN LATERAL slot_gate(g.next_allowed_at, g.rate_rps, p_now, p_tolerance) AS gate
        WHERE g.workspace_id = p_workspace_id
    ), open_channels AS MATERIALIZED (
        SELECT o.*,
               row_number() OVER (ORDER BY o.next_due_at, o.channel_id) AS turn,
               ARRAY(
                   SELECT q.delivery_id
                   FROM delivery_queue q
                   WHERE q.workspace_id = p_workspace_id
                     AND q.channel_id = o.channel_id
                     AND NOT q.asleep
                     AND q.sort_at >= o.low_water
                     AND q.claim_token IS NULL
                   ORDER BY q.sort_at, q.delivery_id
                   LIMIT CASE WHEN o.places > 0 THEN o.places + 1 ELSE 0 END -- one more shows whether anything is left
               ) AS waiting
        FROM (
            SELECT p.channel_id, c.place, c.base, c.step, c.room, d.next_due_at, d.low_water,
                   g.group_place, g.base AS group_base, g.step AS group_step, g.room AS group_room,
                   c.max_parallel - f.flying AS free,
                   least(c.max_parallel - f.flying, _share) AS places
            FROM unnest(p_channel_ids) AS p (channel_id)
            CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
                SELECT c.ctid AS place, c.platform, c.rate_group, c.max_parallel, gate.base, gate.step, gate.room
                FROM channels c
                CROSS JOIN LATERAL slot_gate(c.next_allowed_at, c.rate_rps, p_now, p_tolerance) AS gate
                WHERE c.workspace_id = p_workspace_id
                  AND c.channel_id = p.channel_id
                  AND gate.room > 0
                  AND channel_opens_at(c, p_now) <= p_now
                OFFSET 0
            ) AS c
            CROSS JOIN LATERAL (
                SELECT d.next_due_at, d.low_water
                FROM channel_due d
                WHERE d.workspace_id = p_workspace_id
                  AND d.channel_id = p.channel_id
                OFFSET 0
            ) AS d
            CROSS JOIN LATERAL (
                SELECT coalesce(sum(CASE k.side WHEN 'started' THEN k.total ELSE -k.total END), 0)::int AS flying
                FROM channel_counters k
                WHERE k.workspace_id = p_workspace_id
                  AND k.channel_id = p.channel_id
            ) AS f
            JOIN groups g
              ON g.platform = c.platform
             AND g.rate_group = c.rate_group
        ) AS o
    ), chosen AS (
        SELECT o.channel_id, o.place, o.step, o.group_place, o.group_base, o.group_step, o.group_room, o.turn,
               q.delivery_id, q.nth,
               o.base + (q.nth - 1) * o.step AS own_slot,
               row_number() OVER (PARTITION BY o.group_place ORDER BY q.nth, o.turn) AS group_nth
        FROM open_channels o
        CROSS JOIN LATERAL unnest(o.waiting[:least(o.room, o.places)]) WITH ORDINALITY AS q (delivery_id, nth)
    ), slotted AS MATERIALIZED (
        SELECT c.channel_id, c.place, c.step, c.group_place, c.group_base, c.group_step, c.delivery_id,
               greatest(c.own_slot, c.group_base + (c.group_nth - 1) * c.group_step) AS slot_at
        FROM chosen c
        WHERE c.group_nth <= c.group_room
        ORDER BY c.nth, c.turn
        LIMIT p_limit
    ), served AS MATERIALIZED (
        SELECT s.channel_id, s.place, s.step, count(*)::int AS taken, max(s.slot_at) + s.step AS gate
        FROM slotted s
        GROUP BY s.channel_id, s.place, s.step
    ), channel_gates AS (
        UPDATE channels c
        SET next_allowed_at = s.gate
        FROM served s
        WHERE c.ctid = s.place
          AND s.step > interval '0'
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
        SELECT l.channel_id, sum(l.taken)::int AS taken, sum(l.waits) > sum(l.taken) AS more,
               coalesce(max(l.free) <= sum(l.taken), false) AS tight
        FROM (
            SELECT p.channel_id, 0 AS taken, 0 AS waits, NULL::int AS free FROM unnest(p_channel_ids) AS p (channel_id)
            UNION ALL
            SELECT o.channel_id, 0, cardinality(o.waiting), o.free FROM open_channels o
            UNION ALL
            SELECT s.channel_id, s.taken, 0, NULL FROM served s
        ) AS l
        GROUP BY l.channel_id
        ORDER BY l.channel_id
    )
    SELECT ARRAY(SELECT s.delivery_id FROM slotted s),
           ARRAY(SELECT s.slot_at FROM slotted s),
           ARRAY(SELECT l.channel_id FROM looked_at l),
           ARRAY(SELECT l.taken FROM looked_at l),
           ARRAY(SELECT l.more FROM looked_at l),
           ARRAY(SELECT l.tight FROM looked_at l)
    INTO taken, slots, channels, counts, more, tight;
END $$;
