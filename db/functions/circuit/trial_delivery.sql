-- trial_delivery(workspace_id, platform, rate_group, tolerance, now) -> the delivery that is to try the platform
--
-- Of those that are due in open channels: the least tried. One that perhaps was sent, or whose last attempt this would
-- be, only if there is no other: the trial may fail. Looks at the channels that are due first, and in each at the first
-- that wait; at all of them only if there is none to be risked among those.
--
-- Locks     none: the caller holds the group
CREATE OR REPLACE FUNCTION trial_delivery(
    p_workspace_id uuid,
    p_platform text,
    p_rate_group text,
    p_tolerance interval,
    p_now timestamptz
)
RETURNS TABLE (delivery_id uuid, channel_id uuid)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _rows int;
    _best record;
BEGIN
    FOREACH _rows IN ARRAY '{16,1000000}'::int[]
    LOOP
        SELECT w.delivery_id, w.channel_id, w.is_risky
        INTO _best
        FROM (
            SELECT d.channel_id, d.low_water
            FROM channel_due d
            WHERE d.workspace_id = p_workspace_id
              AND d.platform = p_platform
              AND d.rate_group = p_rate_group
              AND d.next_due_at <= p_now
              AND d.next_due_at < 'infinity'
            ORDER BY d.next_due_at
            LIMIT 4 * _rows
        ) AS due
        CROSS JOIN LATERAL (
            SELECT c.channel_id, c.max_parallel
            FROM channels c
            CROSS JOIN LATERAL slot_gate(c.next_allowed_at, c.rate_rps, p_now, p_tolerance) AS gate
            WHERE c.workspace_id = p_workspace_id
              AND c.channel_id = due.channel_id
              AND gate.room > 0
              AND channel_opens_at(c, p_now) <= p_now
              -- The next claim ends its pause first, see end_pauses.
              AND (c.paused_until <= p_now AND c.enabled AND c.catch_up ->> 'policy' <> 'all') IS NOT TRUE
            OFFSET 0
        ) AS c
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(CASE k.side WHEN 'started' THEN k.total ELSE -k.total END), 0) AS flying
            FROM channel_counters k
            WHERE k.workspace_id = p_workspace_id
              AND k.channel_id = c.channel_id
        ) AS f
        CROSS JOIN LATERAL (
            SELECT q.delivery_id, q.sort_at
            FROM delivery_queue q
            WHERE q.workspace_id = p_workspace_id
              AND q.channel_id = c.channel_id
              AND NOT q.asleep
              AND q.sort_at >= due.low_water
              AND q.claim_token IS NULL
            ORDER BY q.sort_at, q.delivery_id
            LIMIT _rows
        ) AS q
        CROSS JOIN LATERAL (
            SELECT d.delivery_id, d.channel_id, d.attempt,
                   d.attempt + 1 >= d.max_attempts OR coalesce(d.last_error @> '{"ambiguous": true}', false) AS is_risky
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = q.delivery_id
              AND d.status IN ('queued', 'retry')
            OFFSET 0
        ) AS w
        WHERE f.flying < c.max_parallel
        ORDER BY w.is_risky, w.attempt, q.sort_at, w.delivery_id
        LIMIT 1;
        EXIT WHEN NOT _best.is_risky;
    END LOOP;
    IF _best.delivery_id IS NOT NULL THEN
        RETURN QUERY SELECT _best.delivery_id, _best.channel_id;
    END IF;
END $$;
