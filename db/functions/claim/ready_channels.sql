-- ready_channels(workspace_id, limit, tolerance, now) -> the channels whose turn it is, locked
--
-- As many as their rate group has room for, and a few more in case some turn out to be closed, full or empty. A channel
-- counts for the number of deliveries that it is expected to give (channel_due.expected_batch, see
-- reschedule_channels). So of many channels with a backlog some give several now and the others come next, which costs
-- less than reading each of them for one; of channels with one post each, as many are read as posts can be taken.
--
-- Locks     channels FOR NO KEY UPDATE SKIP LOCKED, by channel_id; the caller holds platform_limits
CREATE OR REPLACE FUNCTION ready_channels(
    p_workspace_id uuid,
    p_limit int,
    p_tolerance interval,
    p_now timestamptz
)
RETURNS uuid[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    RETURN (
    WITH candidates AS MATERIALIZED (
        SELECT due.channel_id
        FROM platform_limits g
        CROSS JOIN LATERAL slot_gate(g.next_allowed_at, g.rate_rps, p_now, p_tolerance) AS gate
        CROSS JOIN LATERAL (
            SELECT d.channel_id, sum(least(d.max_parallel, d.expected_batch)) OVER (ROWS UNBOUNDED PRECEDING) AS places
            FROM (
                SELECT d.channel_id, d.max_parallel, d.expected_batch
                FROM channel_due d
                WHERE d.workspace_id = g.workspace_id
                  AND d.platform = g.platform
                  AND d.rate_group = g.rate_group
                  AND d.next_due_at <= p_now
                ORDER BY d.next_due_at
                LIMIT least(gate.room, p_limit) + 16
            ) AS d
        ) AS due
        WHERE g.workspace_id = p_workspace_id
          AND claimable_at(g.circuit, g.stalled_until) <= p_now
          AND gate.room > 0
          AND due.places <= p_limit + 64
    ), locked AS MATERIALIZED (
        SELECT c.channel_id
        FROM (SELECT k.channel_id FROM candidates k ORDER BY k.channel_id) AS k
        CROSS JOIN LATERAL (
            SELECT c.channel_id
            FROM channels c
            WHERE c.workspace_id = p_workspace_id
              AND c.channel_id = k.channel_id
              -- Not if its pause expired since this claim began: the next claim ends it first, see end_pauses.
              AND (c.paused_until <= p_now AND c.enabled AND c.catch_up ->> 'policy' <> 'all') IS NOT TRUE
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS c
    )
    SELECT array_agg(channel_id)
    FROM locked);
END $$;
