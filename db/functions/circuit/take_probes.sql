-- take_probes(per_second, of_bots) -> the rate groups whose platform is to be asked now, or that may try a delivery now
--
-- Every dispatcher and every bot calls this every second; one of them gets each probe. It costs no slot: it posts
-- nothing. A probe whose process dies is taken again at the next probe_at.
--
-- per_second   probes of one platform in any second, of all of them together; the longest due first
-- auth_ref     of a channel of the group, or of its bot: whose identity to ask for. A group without either is not probed
-- within       how long to wait for the answer at most: until the next probe
-- of_bots      the caller is a bot: only groups that a bot replies in, and no trials, because a bot takes its own with a reply
-- is_trial     no probe: the platform answered one, and a delivery is due: see claim_trial
-- Changes      half -> open, when the worker of the trial is silent: its lease has expired
-- Locks        an advisory lock; platform_limits SKIP LOCKED
CREATE OR REPLACE FUNCTION take_probes(p_per_second int DEFAULT 5, p_of_bots boolean DEFAULT false)
RETURNS TABLE (
    workspace_id uuid,
    platform text,
    rate_group text,
    auth_ref text,
    probe_at timestamptz,
    within interval,
    is_trial boolean
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM platform_limits g WHERE g.circuit <> 'closed' OR g.probe_at IS NOT NULL)
       OR NOT pg_try_advisory_xact_lock(hashtextextended('take_probes', 0)) THEN
        RETURN;
    END IF;
    _now := clock_timestamp();
    PERFORM end_lost_trials(_now);

    RETURN QUERY
    WITH away AS MATERIALIZED (
        SELECT g.workspace_id, g.platform, g.rate_group, g.circuit, g.probe_at, first.due_at,
               CASE WHEN p_of_bots THEN bot.auth_ref ELSE coalesce(first.auth_ref, bot.auth_ref) END AS auth_ref,
               row_number() OVER (PARTITION BY g.platform, g.circuit = 'half' ORDER BY g.probe_at, g.workspace_id) AS nth,
               count(*) FILTER (WHERE g.probed_at > _now - interval '1 second') OVER (PARTITION BY g.platform) AS lately
        FROM platform_limits g
        JOIN workspaces w
          ON w.workspace_id = g.workspace_id
         AND w.status = 'active'
        LEFT JOIN LATERAL (
            SELECT coalesce(a.auth_ref, c.auth_ref) AS auth_ref, d.next_due_at AS due_at
            FROM channel_due d
            JOIN channels c
              ON c.workspace_id = d.workspace_id
             AND c.channel_id = d.channel_id
            LEFT JOIN channel_auth a
              ON a.workspace_id = d.workspace_id
             AND a.channel_id = d.channel_id
            WHERE d.workspace_id = g.workspace_id
              AND d.platform = g.platform
              AND d.rate_group = g.rate_group
            ORDER BY d.next_due_at
            LIMIT 1
        ) AS first ON true
        LEFT JOIN bot_settings bot
          ON bot.workspace_id = g.workspace_id
         AND bot.provider = g.platform
         AND bot.rate_group = g.rate_group
        WHERE coalesce(first.auth_ref, bot.auth_ref) IS NOT NULL
          AND (bot.auth_ref IS NOT NULL OR NOT p_of_bots)
          AND (g.circuit <> 'closed' OR g.probe_at IS NOT NULL)
          AND (g.circuit = 'half' OR g.probe_at <= _now OR g.probed_at > _now - interval '1 second')
    ), taken AS MATERIALIZED (
        SELECT a.workspace_id, a.platform, a.rate_group, a.auth_ref, a.circuit, g.place
        FROM away a
        CROSS JOIN LATERAL (
            SELECT g.ctid AS place
            FROM platform_limits g
            WHERE g.workspace_id = a.workspace_id
              AND g.platform = a.platform
              AND g.rate_group = a.rate_group
              AND g.circuit = a.circuit
              AND g.probe_at = a.probe_at
              AND g.trial IS NULL
            FOR UPDATE SKIP LOCKED
        ) AS g
        WHERE CASE WHEN a.circuit = 'half' THEN a.due_at <= _now AND NOT p_of_bots
                   ELSE a.probe_at <= _now AND a.nth <= p_per_second - a.lately END
    ), probed AS (
        UPDATE platform_limits g
        SET probes = g.probes + 1,
            probed_at = _now,
            probe_at = _now + probe_wait(g.probes + 2)
        FROM taken t
        WHERE g.ctid = t.place
          AND t.circuit <> 'half'
        RETURNING g.workspace_id, g.platform, g.rate_group, g.probe_at
    )
    SELECT t.workspace_id, t.platform, t.rate_group, t.auth_ref, p.probe_at, p.probe_at - _now, t.circuit = 'half'
    FROM taken t
    LEFT JOIN probed p USING (workspace_id, platform, rate_group);
END $$;
