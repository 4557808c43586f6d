-- why_channel(workspace_id, channel_ids, now, tolerance) -> every closed gate of these channels, and what opens it
--
-- An open channel has no row. The gates are those that a claim checks, by the same functions: the parts of
-- channel_opens_at, slot_gate for the channel and for its rate group, and its places.
--
-- gate          workspace_paused | workspace_disabled | set_aside | channel_disabled | channel_paused | window |
--               claim_blocked | platform_outage | group_cooldown | group_slot | channel_slot | max_parallel: see why_precedence
-- since         when it closed; null when that is not recorded
-- until         when it opens by itself; null when it does not. max_parallel: the first lease in the channel that ends,
--               usually its send ends long before
-- claim_blocked: for five seconds no claim has got the lock of the workspace, and a backend holds it now
-- platform_outage: the circuit of the rate group is open or half (cause.probe_at: the next probe), or the group stalls
-- released_by   operator | settings | time | commit | monitor | platform
-- command       what to type; null when there is nothing to do but wait
-- cause         what closed it: {"code", "operator", "reason", "rate_rps", "sending", "max_parallel", …}
--
-- Cost          per channel a few probes by key; per closed channel its last closing
CREATE OR REPLACE FUNCTION why_channel(
    p_workspace_id uuid,
    p_channel_ids uuid[],
    p_now timestamptz DEFAULT NULL,
    p_tolerance interval DEFAULT '50 milliseconds'
)
RETURNS TABLE (
    channel_id uuid,
    gate text,
    since timestamptz,
    until timestamptz,
    released_by text,
    command text,
    cause jsonb
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH clock AS MATERIALIZED (
        SELECT coalesce(p_now, clock_timestamp()) AS now
    ), chosen AS MATERIALIZED (
        SELECT c.channel_id, c.platform, c.rate_group, c.enabled, c.paused_until, c.max_parallel, c.rate_rps,
               w.status, w.status_since, own.base, own.step, own.room, flight.flying,
               CASE WHEN c.window_mode = 'windowed'
                    THEN window_opens_at(c.posting_window, c.timezone, clock.now) END AS opens_at,
               format(' %s --workspace %s --reason ''…''', c.channel_id, c.workspace_id) AS named
        FROM clock, workspaces w
        JOIN channels c USING (workspace_id)
        CROSS JOIN LATERAL slot_gate(c.next_allowed_at, c.rate_rps, clock.now, p_tolerance) AS own
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(CASE k.side WHEN 'started' THEN k.total ELSE -k.total END), 0)::int AS flying
            FROM channel_counters k
            WHERE k.workspace_id = c.workspace_id
              AND k.channel_id = c.channel_id
        ) AS flight
        WHERE w.workspace_id = p_workspace_id
          AND c.channel_id = ANY (p_channel_ids)
          AND sees_workspace(w.workspace_id)
    ), closed_groups AS MATERIALIZED (
        SELECT g.*
        FROM clock, (
            SELECT array_agg(DISTINCT c.platform) AS platforms, array_agg(DISTINCT c.rate_group) AS rate_groups
            FROM chosen c
        ) AS k
        CROSS JOIN LATERAL why_closed_groups(p_workspace_id, k.platforms, k.rate_groups, clock.now, p_tolerance) AS g
    ), gates AS (
        SELECT c.channel_id, 'workspace_' || c.status AS gate, c.status_since AS since, NULL::timestamptz AS until,
               'operator' AS released_by,
               format('autopost workspace resume --workspace %s --reason ''…''', p_workspace_id) AS command,
               NULL::jsonb AS cause
        FROM chosen c
        WHERE c.status <> 'active'
        UNION ALL
        SELECT c.channel_id, 'set_aside', s.since, s.until, 'time', NULL,
               jsonb_build_object('work', s.work, 'code', s.error, 'failures', s.failures)
        FROM clock, chosen c
        CROSS JOIN LATERAL (
            SELECT s.work, s.since, s.until, s.error, s.failures
            FROM set_aside s
            WHERE s.workspace_id = p_workspace_id
              AND s.work IN ('claim', 'commit')
              AND s.until > clock.now - interval '5 minutes'
            ORDER BY s.until DESC
            LIMIT 1
        ) AS s
        UNION ALL
        SELECT c.channel_id, 'channel_disabled', closed.ts, NULL, 'operator', 'autopost channel enable' || c.named,
               closed.cause
        FROM chosen c
        LEFT JOIN LATERAL why_closed(p_workspace_id, c.channel_id, 'channel_disabled') AS closed ON true
        WHERE NOT c.enabled
        UNION ALL
        SELECT c.channel_id, 'channel_paused', closed.ts, nullif(c.paused_until, 'infinity'), 'operator',
               'autopost channel resume' || c.named, closed.cause
        FROM clock, chosen c
        LEFT JOIN LATERAL why_closed(p_workspace_id, c.channel_id, 'channel_paused') AS closed ON true
        WHERE c.paused_until > clock.now
        UNION ALL
        SELECT c.channel_id, 'window', NULL, nullif(c.opens_at, 'infinity'),
               CASE WHEN isfinite(c.opens_at) THEN 'time' ELSE 'settings' END, NULL, NULL
        FROM clock, chosen c
        WHERE c.opens_at > clock.now
        UNION ALL
        SELECT c.channel_id, 'claim_blocked', r.since, NULL, 'operator',
               'SELECT pg_terminate_backend(' || r.blocking_pid || ')',
               jsonb_strip_nulls(jsonb_build_object('pid', r.blocking_pid, 'user', r.blocking_user,
                                                    'application', r.blocking_application, 'state', r.blocking_state))
        FROM clock
        CROSS JOIN refused_claims('5 seconds', p_workspace_id, clock.now) AS r
        CROSS JOIN chosen c
        WHERE r.blocking_pid IS NOT NULL
        UNION ALL
        SELECT c.channel_id, 'platform_outage', g.opened_at,
               CASE WHEN g.circuit = 'closed' THEN g.stalled_until END, 'platform', NULL,
               jsonb_strip_nulls(jsonb_build_object(
                   'platform', g.platform, 'rate_group', g.rate_group,
                   'circuit', CASE WHEN g.circuit = 'closed' THEN 'stalled' ELSE g.circuit::text END,
                   'code', g.outage_error ->> 'code', 'probes', nullif(g.probes, 0),
                   'probe_at', CASE WHEN g.circuit = 'open' THEN g.probe_at END))
        FROM clock, chosen c
        JOIN platform_limits g
          ON g.workspace_id = p_workspace_id
         AND g.platform = c.platform
         AND g.rate_group = c.rate_group
        WHERE claimable_at(g.circuit, g.stalled_until) > clock.now
        UNION ALL
        SELECT c.channel_id, CASE WHEN g.cooling THEN 'group_cooldown' ELSE 'group_slot' END, g.updated_at,
               nullif(g.base, 'infinity'), CASE WHEN isfinite(g.base) THEN 'time' ELSE 'settings' END, NULL,
               jsonb_strip_nulls(jsonb_build_object(
                   'platform', g.platform, 'rate_group', g.rate_group, 'rate_rps', g.rate_rps, 'code', g.code))
        FROM chosen c
        JOIN closed_groups g USING (platform, rate_group)
        UNION ALL
        SELECT c.channel_id, 'channel_slot', NULL, nullif(c.base, 'infinity'),
               CASE WHEN isfinite(c.base) THEN 'time' ELSE 'settings' END, NULL,
               jsonb_strip_nulls(jsonb_build_object('rate_rps', c.rate_rps))
        FROM chosen c
        WHERE c.room = 0
        UNION ALL
        SELECT c.channel_id, 'max_parallel', busy.since, busy.until,
               CASE WHEN busy.until < clock.now THEN 'monitor' ELSE 'commit' END,
               CASE WHEN busy.until < clock.now
                    THEN format('autopost queue release --workspace %s --reason ''…''', p_workspace_id) END,
               jsonb_build_object('sending', c.flying, 'max_parallel', c.max_parallel, 'deliveries', busy.deliveries)
        FROM clock, chosen c
        CROSS JOIN LATERAL why_sending(p_workspace_id, c.channel_id, c.flying) AS busy
        WHERE c.flying >= c.max_parallel
    )
    SELECT g.channel_id, g.gate, g.since, g.until, g.released_by, g.command, g.cause
    FROM gates g
    ORDER BY g.channel_id, array_position(why_precedence(), g.gate)
$$;
