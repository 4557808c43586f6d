-- verify_sends(workspace_id, after_ts, after_id, last_ts, last_id)
-- -> claims of a page of events that a gate should have stopped
--
-- Checks the send_attempt events after (after_ts, after_id) up to (last_ts, last_id), slots together with the five
-- hundred before them, because gates continue from page to page.
--
-- kind   slots          the slots of a channel or a rate group are too close: of any n + 1 of them the last is less
--                       than n steps after the first, beyond the tolerance of a claim. Checked only since the rate, or
--                       the group of the channel, was last changed (rate_since), so under one rate; missing slots
--                       (later calls of a plan leave no event) can only increase the distance
--        cooldown       a platform had asked the channel or its rate group to wait beyond that moment; checked for the
--                       last hour
--        disabled, paused   see verify_closed_channels
--        circuit            see verify_circuits
-- The time of a claim is its slot or its event, whichever is later. Windows are not checked: the log does not have
-- them. A next_allowed_at set back by hand is found, too.
CREATE OR REPLACE FUNCTION verify_sends(
    p_workspace_id uuid,
    p_after_ts timestamptz,
    p_after_id uuid,
    p_last_ts timestamptz,
    p_last_id uuid
)
RETURNS TABLE (kind text, event_id uuid, delivery_id uuid, channel_id uuid, told text, found text)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH taken AS MATERIALIZED (
        SELECT e.*, greatest(e.ts, e.slot_at) AS at
        FROM (
            SELECT true AS is_new, s.ts, s.id, s.delivery_id, s.channel_id, s.slot_at
            FROM send_attempts(p_workspace_id, p_after_ts, p_after_id, p_last_ts, p_last_id) AS s
            UNION ALL
            (SELECT false, e.ts, e.id, e.delivery_id, e.channel_id, (e.meta ->> 'slot_at')::timestamptz
             FROM events e
             WHERE e.workspace_id = p_workspace_id
               AND e.ts <= p_after_ts
               AND e.ts > p_after_ts - interval '1 hour'
               AND (e.ts, e.id) <= (p_after_ts, p_after_id)
               AND e.action = 'send_attempt'
             ORDER BY e.ts DESC, e.id DESC
             LIMIT 500)
        ) AS e
    ), gated AS MATERIALIZED (
        SELECT c.channel_id, c.platform, c.rate_group, c.rate_since, rate_step(c.rate_rps) AS step,
               greatest(c.rate_since, g.rate_since) AS group_since, rate_step(g.rate_rps) AS group_step
        FROM (SELECT DISTINCT t.channel_id FROM taken t) AS k
        JOIN channels c
          ON c.workspace_id = p_workspace_id
         AND c.channel_id = k.channel_id
        LEFT JOIN platform_limits g
          ON g.workspace_id = p_workspace_id
         AND g.platform = c.platform
         AND g.rate_group = c.rate_group
    ), slotted AS (
        SELECT t.*, x.gate, x.step
        FROM taken t
        JOIN gated g USING (channel_id)
        CROSS JOIN LATERAL (
            SELECT 'channel ' || g.channel_id AS gate, g.step, g.rate_since AS since
            UNION ALL
            SELECT format('group %s of %s', g.rate_group, g.platform), g.group_step, g.group_since
        ) AS x
        WHERE x.step > interval '0'
          AND t.slot_at >= x.since
    ), placed AS (
        -- In a gate that gives one slot per step, slot - n * step rises, n being the number of the slot.
        SELECT s.*, s.slot_at - row_number() OVER (PARTITION BY s.gate ORDER BY s.slot_at, s.ts, s.id) * s.step AS place
        FROM slotted s
    ), close AS (
        SELECT p.*, max(p.place) OVER (PARTITION BY p.gate ORDER BY p.slot_at, p.ts, p.id
                                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS furthest
        FROM placed p
    ), waits AS MATERIALIZED (
        SELECT w.*
        FROM (SELECT min(t.ts) AS first_ts FROM taken t) AS t
        CROSS JOIN LATERAL requested_waits(p_workspace_id, t.first_ts - interval '1 hour', p_last_ts) AS w
    ), cooled AS (
        SELECT x.*, max(x.until) OVER (PARTITION BY x.gate ORDER BY x.ts, x.until NULLS FIRST) AS asked_until
        FROM (
            SELECT t.is_new, t.ts, t.id, t.delivery_id, t.channel_id, t.slot_at, t.at,
                   x.gate, x.since, NULL::timestamptz AS until
            FROM taken t
            JOIN gated g USING (channel_id)
            CROSS JOIN LATERAL (
                VALUES ('channel ' || g.channel_id, '-infinity'),
                       (format('group %s of %s', g.rate_group, g.platform), g.rate_since)
            ) AS x (gate, since)
            WHERE EXISTS (SELECT 1 FROM waits)
            UNION ALL
            SELECT false, w.ts, NULL, NULL, w.channel_id, NULL, NULL,
                   CASE w.scope WHEN 'channel' THEN 'channel ' || c.channel_id
                                ELSE format('group %s of %s', c.rate_group, c.platform) END,
                   NULL, w.until
            FROM waits w
            JOIN channels c
              ON c.workspace_id = p_workspace_id
             AND c.channel_id = w.channel_id
            WHERE w.scope = 'channel' OR w.ts > c.rate_since
        ) AS x
    )
    SELECT 'slots', c.id, c.delivery_id, c.channel_id, format('%s, a slot per %s', c.gate, c.step), c.slot_at::text
    FROM close c
    WHERE c.is_new AND c.place < c.furthest - interval '51 milliseconds'
    UNION ALL
    SELECT 'cooldown', c.id, c.delivery_id, c.channel_id, format('%s until %s', c.gate, c.asked_until), c.slot_at::text
    FROM cooled c
    WHERE c.is_new AND c.at < c.asked_until AND c.ts > c.since
    UNION ALL
    SELECT v.* FROM verify_closed_channels(p_workspace_id, p_after_ts, p_after_id, p_last_ts, p_last_id) AS v
    UNION ALL
    SELECT v.* FROM verify_circuits(p_workspace_id, p_after_ts, p_after_id, p_last_ts, p_last_id) AS v
$$;
