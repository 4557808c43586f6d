-- penalise_channels(workspace_id, outcomes, channel_ids, pause, disable_streak, run_id, now)
--
-- Writes the consequences of decided outcomes to their channels.
--
-- PERMANENT channel    streak + 1 and a pause; disabled at disable_streak. Not in a storm: see decide_outcomes
-- TRANSIENT channel    the wait that the provider asked for moves the gate of the channel, by a day at most
-- sent                 the streak is 0 again, before failures of the same batch are counted
--
-- channel_ids  the channels that lock_gates has locked; no other streak is reset
-- Changes      channels
-- Appends      channel_paused, channel_disabled
-- Locks        channels: held by the caller
CREATE OR REPLACE FUNCTION penalise_channels(
    p_workspace_id uuid,
    p_outcomes decided_outcome[],
    p_channel_ids uuid[],
    p_pause interval,
    p_disable_streak int,
    p_run_id uuid,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    WITH effects AS MATERIALIZED (
        SELECT o.channel_id, o.channel_enabled,
               count(*) FILTER (WHERE o.is_penalty)::int AS failures,
               min(o.code) FILTER (WHERE o.is_penalty) AS code,
               min(o.trace_id) FILTER (WHERE o.is_penalty) AS trace_id,
               bool_or(o.status = 'sent') AS has_sent,
               max(CASE WHEN o.retry_after_ms > 86400000 THEN 86400000 ELSE o.retry_after_ms END)
                   FILTER (WHERE o.category = 'TRANSIENT' AND o.scope = 'channel') AS wait_ms
        FROM (
            SELECT o.*, o.status = 'failed_permanent' AND o.scope = 'channel' AND NOT o.in_storm AS is_penalty
            FROM unnest(p_outcomes) AS o
            WHERE o.status IS NOT NULL
        ) AS o
        GROUP BY o.channel_id, o.channel_enabled
        HAVING bool_or(o.is_penalty)
            OR bool_or(o.category = 'TRANSIENT' AND o.scope = 'channel')
            OR bool_or(o.status = 'sent' AND o.error_streak <> 0 AND o.channel_id = ANY (p_channel_ids))
    ), changed AS (
        UPDATE channels c
        SET error_streak = CASE WHEN e.has_sent THEN 0 ELSE c.error_streak END + e.failures,
            paused_until = CASE WHEN e.failures > 0 THEN greatest(c.paused_until, p_now + p_pause)
                                ELSE c.paused_until END,
            enabled = c.enabled AND (e.failures = 0 OR CASE WHEN e.has_sent THEN 0 ELSE c.error_streak END + e.failures
                                                       < p_disable_streak),
            next_allowed_at = greatest(c.next_allowed_at, p_now + make_interval(secs => e.wait_ms / 1000.0)),
            updated_at = p_now
        FROM effects e
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = e.channel_id
        RETURNING c.channel_id, c.error_streak, c.paused_until, e.code, e.trace_id, e.failures > 0 AS is_paused,
                  e.channel_enabled AND NOT c.enabled AS is_disabled
    )
    INSERT INTO events (workspace_id, channel_id, action, result, error, meta)
    SELECT p_workspace_id, c.channel_id, a.action, 'error',
           jsonb_build_object('code', c.code, 'scope', 'channel'),
           event_meta(c.trace_id, p_run_id, jsonb_build_object(
               'error_streak', c.error_streak, 'paused_until', c.paused_until))
    FROM changed c
    CROSS JOIN LATERAL (
        SELECT 1 AS n, 'channel_paused'::event_action AS action
        UNION ALL
        SELECT 2, 'channel_disabled' WHERE c.is_disabled
    ) AS a
    WHERE c.is_paused
    ORDER BY c.channel_id, a.n;
END $$;
