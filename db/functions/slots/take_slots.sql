-- take_slots(workspace_ids, delivery_ids, claim_tokens, beside, missed, …)
-- -> nth, slot_at, taken: one row per call; none for a delivery that is not the caller's to send
--
-- A claim takes the slot of a delivery's first call. For each later call, and for one that missed its slot, the sender
-- asks here when the call is next. The arrays go row by row, one row per call, of any workspaces. Of several calls of one
-- rate group only the first takes a slot; the others are told to ask again at once. So every call has its slot at its own time, on both levels. Charged at the claim,
-- the later calls of long plans coincided with the first calls of those claimed meanwhile: 41 in one second of a group
-- of 27, after a stop.
--
-- taken        the slot is this call's
-- not taken    nothing is charged, call again then: the channel opens later than its group does, and the group's slots
--              until then belong to others; or slot_at is further away than patience (a cooldown), and the caller gives
--              the delivery back. So does everything in hand of a group whose circuit is open, except the trial
-- no row       the token is not the current one: the claim passed on, and nothing more may be sent
-- beside       a call with the token that adds nothing to the chat (an upload, a query): the channel's own rate is
--              neither waited for nor charged
-- missed       the slot that this call had and did not use because its worker was delayed: unless another call took a
--              later one in the channel, the channel is as open as it was for that slot
-- A publication's later calls wait for the channel's own rate only; after each the channel stays closed for others: see
-- publication_step.
-- Changes      channels.next_allowed_at, platform_limits.next_allowed_at
-- Locks        platform_limits, channels: in that order, each by key
-- Fails        when one of them is held by another transaction for half a second: the others must not wait for it
CREATE OR REPLACE FUNCTION take_slots(
    p_workspace_ids uuid[],
    p_delivery_ids uuid[],
    p_claim_tokens uuid[],
    p_beside boolean[],
    p_missed timestamptz[],
    p_patience interval DEFAULT '5 seconds',
    p_now timestamptz DEFAULT NULL
)
RETURNS TABLE (nth bigint, slot_at timestamptz, taken boolean)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET lock_timeout = '500ms'
AS $$
#variable_conflict use_column
DECLARE
    _calls record;
    _groups record;
    _channels record;
    _now timestamptz;
BEGIN
    SELECT array_agg(c.nth) AS nths, array_agg(c.turn) AS turns, array_agg(c.workspace_id) AS workspaces,
           array_agg(c.delivery_id) AS deliveries, array_agg(c.channel_id) AS channels,
           array_agg(c.platform) AS platforms, array_agg(c.rate_group) AS rate_groups,
           array_agg(c.beside) AS beside, array_agg(c.missed) AS missed,
           array_agg(c.policy = 'publication') AS slow
    INTO _calls
    FROM (
        SELECT c.nth, c.workspace_id, c.delivery_id, c.beside, c.missed, d.channel_id, d.platform, d.rate_group, d.policy,
               row_number() OVER (PARTITION BY c.workspace_id, d.platform, d.rate_group ORDER BY c.nth) AS turn
        FROM unnest(p_workspace_ids, p_delivery_ids, p_claim_tokens, p_beside, p_missed)
            WITH ORDINALITY AS c (workspace_id, delivery_id, claim_token, beside, missed, nth)
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT d.channel_id, d.policy, ch.platform, ch.rate_group
            FROM deliveries d
            JOIN channels ch
              ON ch.workspace_id = d.workspace_id
             AND ch.channel_id = d.channel_id
            WHERE d.workspace_id = c.workspace_id
              AND d.delivery_id = c.delivery_id
              AND d.claim_token = c.claim_token
              AND d.status = 'sending'
            OFFSET 0
        ) AS d
        ORDER BY c.workspace_id, d.platform, d.rate_group, c.nth
    ) AS c;
    IF _calls.nths IS NULL THEN
        RETURN;
    END IF;

    SELECT array_agg(g.place) AS places, array_agg(g.gate) AS gates, array_agg(g.step) AS steps,
           array_agg(g.is_away) AS are_away
    INTO _groups
    FROM unnest(_calls.workspaces, _calls.platforms, _calls.rate_groups, _calls.turns, _calls.deliveries)
        AS c (workspace_id, platform, rate_group, turn, delivery_id)
    LEFT JOIN LATERAL (
        SELECT g.ctid AS place, g.next_allowed_at AS gate, rate_step(g.rate_rps) AS step,
               g.circuit <> 'closed' AND g.trial IS DISTINCT FROM c.delivery_id AS is_away
        FROM platform_limits g
        WHERE g.workspace_id = c.workspace_id
          AND g.platform = c.platform
          AND g.rate_group = c.rate_group
          AND c.turn = 1
        FOR UPDATE
    ) AS g ON true;
    SELECT array_agg(c.place ORDER BY c.at) AS places, array_agg(c.gate ORDER BY c.at) AS gates,
           array_agg(c.step ORDER BY c.at) AS steps, array_agg(c.is_single ORDER BY c.at) AS are_single
    INTO _channels
    FROM (
        SELECT c.at, ch.*
        FROM (
            SELECT *
            FROM unnest(_calls.workspaces, _calls.channels, _calls.turns, _groups.are_away)
                WITH ORDINALITY AS c (workspace_id, channel_id, turn, is_away, at)
            ORDER BY c.workspace_id, c.channel_id
        ) AS c
        LEFT JOIN LATERAL (
            SELECT ch.ctid AS place, ch.next_allowed_at AS gate, rate_step(ch.rate_rps) AS step,
                   ch.max_parallel = 1 AS is_single
            FROM channels ch
            WHERE ch.workspace_id = c.workspace_id
              AND ch.channel_id = c.channel_id
              AND c.turn = 1
              AND NOT c.is_away
            FOR NO KEY UPDATE
        ) AS ch ON true
    ) AS c;
    _now := coalesce(p_now, clock_timestamp());

    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT c.nth, c.turn, c.group_place, c.group_gate, c.group_step, c.is_away, c.place,
               CASE WHEN NOT c.beside THEN s.step END AS step,
               CASE
                   WHEN c.beside THEN NULL
                   WHEN c.gate = c.missed + s.step THEN c.missed
                   WHEN c.is_single THEN c.gate - (s.step - c.step) -- nobody else has used it since
                   ELSE c.gate
               END AS gate
        FROM unnest(_calls.nths, _calls.turns, _calls.beside, _calls.missed, _calls.slow, _groups.places, _groups.gates,
                    _groups.steps, _groups.are_away, _channels.places, _channels.gates, _channels.steps,
                    _channels.are_single)
            AS c (nth, turn, beside, missed, slow, group_place, group_gate, group_step, is_away, place, gate, step,
                  is_single)
        CROSS JOIN LATERAL (
            SELECT CASE WHEN c.slow THEN publication_step(c.step) ELSE c.step END AS step
        ) AS s
    ), judged AS MATERIALIZED (
        SELECT a.*, s.slot,
               a.turn = 1 AND NOT a.is_away AND s.slot <= _now + p_patience
               AND (a.gate IS NULL OR a.gate <= greatest(_now, a.group_gate)) AS is_taken
        FROM asked a
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN a.turn > 1 THEN _now
                WHEN a.is_away THEN _now + p_patience + interval '1 minute'
                ELSE greatest(_now, a.group_gate, a.gate)
            END AS slot
        ) AS s
    ), channel_gates AS (
        UPDATE channels c
        SET next_allowed_at = j.slot + j.step
        FROM judged j
        WHERE c.ctid = CASE WHEN j.is_taken AND j.step > interval '0' THEN j.place END
    ), group_gates AS (
        UPDATE platform_limits g
        SET next_allowed_at = j.slot + j.group_step,
            updated_at = _now
        FROM judged j
        WHERE g.ctid = CASE WHEN j.is_taken AND j.group_step > interval '0' THEN j.group_place END
    )
    SELECT j.nth, j.slot, j.is_taken FROM judged j ORDER BY j.nth;
END $$;
