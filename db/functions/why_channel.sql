-- why_channel(workspace_id, channel_ids, now, tolerance) -> every closed gate of these channels, and what opens it
--
-- An open channel has no row. The gates are those that a claim asks, by the same functions: channel_opens_at's
-- parts, slot_gate for the channel and for its token group, and its places.
--
-- gate          workspace_paused | workspace_disabled | channel_disabled | channel_paused | window | group_cooldown |
--               group_slot | channel_slot | max_parallel: see why_precedence
-- since         when it closed; null when nobody told
-- until         when it opens by itself; null when it does not. max_parallel: the first lease in the channel that ends,
--               usually its send is over long before
-- released_by   operator | settings | time | commit | monitor
-- command       what a human would type; null when there is nothing to do but wait
-- cause         what closed it: {"code", "operator", "reason", "rate_rps", "sending", "max_parallel", …}
--
-- A group is cooling down, rather than between two slots, when it has no rate, is closed for longer than slots alone
-- would close it (take_slot goes at most 5 s ahead), or a provider asked for the wait in the moment its gate was set.
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
        SELECT g.platform, g.rate_group, g.rate_rps, g.updated_at, gate.base, asked.code,
               gate.step = interval '0' OR gate.base > clock.now + gate.step + interval '5 seconds'
                   OR asked.code IS NOT NULL AS cooling
        FROM clock, (SELECT DISTINCT c.platform, c.rate_group FROM chosen c) AS k
        JOIN platform_limits g
          ON g.workspace_id = p_workspace_id
         AND g.platform = k.platform
         AND g.rate_group = k.rate_group
        CROSS JOIN LATERAL slot_gate(g.next_allowed_at, g.rate_rps, clock.now, p_tolerance) AS gate
        LEFT JOIN LATERAL (
            SELECT coalesce(e.error ->> 'code', 'unknown') AS code
            FROM events e
            JOIN channels c
              ON c.workspace_id = e.workspace_id
             AND c.channel_id = e.channel_id
             AND c.platform = g.platform
             AND c.rate_group = g.rate_group
            WHERE gate.room = 0
              AND e.workspace_id = p_workspace_id
              AND e.result = 'error'
              AND e.ts BETWEEN g.updated_at - interval '1 second' AND g.updated_at + interval '5 seconds'
              AND ((e.error ->> 'scope' = 'platform'
                    AND (e.error ? 'retry_after_ms' OR e.error ->> 'category' = 'PERMANENT'))
                   OR e.meta @> '{"group_cooled": true}')
            ORDER BY e.ts DESC
            LIMIT 1
        ) AS asked ON true
        WHERE gate.room = 0
    ), gates AS (
        SELECT c.channel_id, 'workspace_' || c.status AS gate, c.status_since AS since, NULL::timestamptz AS until,
               'operator' AS released_by,
               format('UPDATE workspaces SET status = ''active'' WHERE workspace_id = %L', p_workspace_id) AS command,
               NULL::jsonb AS cause
        FROM chosen c
        WHERE c.status <> 'active'
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
        CROSS JOIN LATERAL (
            SELECT min(d.sending_started_at) AS since, min(d.sending_lease_until) AS until,
                   jsonb_agg(d.delivery_id ORDER BY d.sending_lease_until) AS deliveries
            FROM (
                SELECT q.delivery_id
                FROM delivery_queue q
                WHERE q.workspace_id = p_workspace_id
                  AND q.channel_id = c.channel_id
                  AND NOT q.asleep
                  AND q.claim_token IS NOT NULL
                ORDER BY q.sort_at
                LIMIT least(c.flying, 20) -- those that are out are the oldest: the rest of a backlog is not read
            ) AS q
            JOIN deliveries d
              ON d.workspace_id = p_workspace_id
             AND d.delivery_id = q.delivery_id
             AND d.status = 'sending'
        ) AS busy
        WHERE c.flying >= c.max_parallel
    )
    SELECT g.channel_id, g.gate, g.since, g.until, g.released_by, g.command, g.cause
    FROM gates g
    ORDER BY g.channel_id, array_position(why_precedence(), g.gate)
$$;
