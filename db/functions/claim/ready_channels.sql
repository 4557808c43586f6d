-- ready_channels(groups, limit, spare, tolerance, now) -> the channels whose turn it is, locked, and the group of each
--
-- As many as their rate group has room for, and `spare` more in case some turn out to be closed, full or empty. A
-- channel counts for the number of deliveries that it is expected to give (channel_due.expected_batch, see
-- reschedule_channels). So of many channels with a backlog some give several now and the others come next, which costs
-- less than reading each of them for one; of channels with one post each, as many are read as posts can be taken.
--
-- groups    of lock_rate_groups
-- limit     deliveries per workspace
-- Returns   workspaces, channels, places: row by row the key of a channel and the place of its group; null for none
-- Locks     channels FOR NO KEY UPDATE SKIP LOCKED, by key; the caller holds the groups
CREATE OR REPLACE FUNCTION ready_channels(
    p_groups tid[],
    p_limit int,
    p_spare int,
    p_tolerance interval,
    p_now timestamptz,
    OUT workspaces uuid[],
    OUT channels uuid[],
    OUT places tid[]
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    WITH candidates AS MATERIALIZED (
        SELECT g.workspace_id, due.channel_id, g.place
        FROM unnest(p_groups) AS p (place)
        CROSS JOIN LATERAL (
            SELECT g.workspace_id, g.platform, g.rate_group, g.ctid AS place, gate.room
            FROM platform_limits g
            CROSS JOIN LATERAL slot_gate(g.next_allowed_at, g.rate_rps, p_now, p_tolerance) AS gate
            WHERE g.ctid = p.place
              AND claimable_at(g.circuit, g.stalled_until) <= p_now
            OFFSET 0
        ) AS g
        CROSS JOIN LATERAL (
            SELECT d.channel_id, sum(least(d.max_parallel, d.expected_batch)) OVER (ROWS UNBOUNDED PRECEDING) AS places
            FROM (
                SELECT d.channel_id, d.max_parallel, d.expected_batch
                FROM channel_due d
                WHERE d.workspace_id = g.workspace_id
                  AND d.platform = g.platform
                  AND d.rate_group = g.rate_group
                  AND d.next_due_at <= p_now
                  AND d.next_due_at < 'infinity'
                ORDER BY d.next_due_at
                LIMIT least(g.room, p_limit) + p_spare
            ) AS d
        ) AS due
        WHERE g.room > 0
          AND due.places <= p_limit + 64
    ), locked AS MATERIALIZED (
        SELECT k.workspace_id, k.channel_id, k.place
        FROM (SELECT * FROM candidates k ORDER BY k.workspace_id, k.channel_id) AS k
        CROSS JOIN LATERAL (
            SELECT
            FROM channels c
            WHERE c.workspace_id = k.workspace_id
              AND c.channel_id = k.channel_id
              -- Not if its pause expired since this claim began: the next claim ends it first, see end_pauses.
              AND (c.paused_until <= p_now AND c.enabled AND c.catch_up ->> 'policy' <> 'all') IS NOT TRUE
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS c
    )
    SELECT array_agg(l.workspace_id), array_agg(l.channel_id), array_agg(l.place)
    INTO workspaces, channels, places
    FROM locked l;
END $$;
