-- snapshot(workspace_id, window, top, history) -> the state of the queue, as one document
--
-- {"at", "window", "workspaces": [{"workspace_id", "name", "status",
--    "counts":      {"queued", "claimed", "sending", "retry", "dead", "failed_permanent"; with history also "sent",
--                    "deduped"},
--    "held":        of retry: waits for resolve_ambiguous      "skipped": of dead: an operator has looked
--    "oldest_due":  the post that could be out longest: {"channel_id", "due_at"}; channels that are closed left out
--    "activity":    events of the window by action
--    "top_errors":  [{"code", "scope", "action", "count", "last_at"}] of the window, the most frequent first
--    "channels":    [{"channel_id", "platform", "title", "state", "reason", "until", "waiting", "held", "sending",
--                     "oldest_due_at", "error_streak"}]}]}
--
-- state        disabled, paused, window_closed, cooling (the group's or channel's gate is over a second away), full
--              (max_parallel), open: the first that applies. reason: the error or the operator's words that closed
--              it. until: when it opens by itself; null when it does not, or when that depends on a send.
-- workspace_id null: all of them, and of the channels only those that are not open
--
-- Cost         what is live once (delivery_queue with its deliveries), what was given up once, the events of the
--              window twice at most, the channels once, for each closed channel its last closing. History is read only
--              when asked for: then every delivery of the workspace.
CREATE OR REPLACE FUNCTION snapshot(
    p_workspace_id uuid DEFAULT NULL,
    p_window interval DEFAULT '10 minutes',
    p_top int DEFAULT 10,
    p_history boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH clock AS MATERIALIZED (
        SELECT clock_timestamp() AS now
    ), chosen AS MATERIALIZED (
        SELECT w.workspace_id, w.name, w.status
        FROM workspaces w
        WHERE p_workspace_id IS NULL OR w.workspace_id = p_workspace_id
    ), live AS MATERIALIZED (
        SELECT q.workspace_id, q.channel_id, d.status, count(*) AS deliveries,
               count(*) FILTER (WHERE d.status = 'retry' AND d.next_retry_at = 'infinity') AS held,
               min(due) FILTER (WHERE d.status IN ('queued', 'retry') AND due <= clock.now) AS oldest_due_at
        FROM clock, chosen w
        JOIN delivery_queue q USING (workspace_id)
        CROSS JOIN LATERAL (
            -- One probe per live delivery, however the planner would weigh reading them all.
            SELECT d.status, d.not_before, d.scheduled_for, d.next_retry_at
            FROM deliveries d
            WHERE d.workspace_id = q.workspace_id
              AND d.delivery_id = q.delivery_id
            LIMIT 1
        ) AS d
        CROSS JOIN LATERAL due_of(d.status, d.not_before, d.scheduled_for, d.next_retry_at) AS due
        GROUP BY q.workspace_id, q.channel_id, d.status
    ), in_channels AS MATERIALIZED (
        SELECT l.workspace_id, l.channel_id,
               sum(l.deliveries) FILTER (WHERE l.status IN ('queued', 'retry')) AS waiting,
               sum(l.deliveries) FILTER (WHERE l.status = 'sending') AS sending,
               sum(l.held) AS held,
               min(l.oldest_due_at) AS oldest_due_at
        FROM live l
        GROUP BY l.workspace_id, l.channel_id
    ), channel_states AS MATERIALIZED (
        SELECT c.workspace_id, c.channel_id, c.platform, c.title, c.error_streak, s.state, n.waiting, n.held,
               n.sending, n.oldest_due_at,
               CASE s.state
                   WHEN 'paused' THEN c.paused_until
                   WHEN 'window_closed' THEN o.opens_at
                   WHEN 'cooling' THEN o.gate
               END AS until
        FROM clock, chosen w
        JOIN channels c USING (workspace_id)
        LEFT JOIN platform_limits g
          ON g.workspace_id = c.workspace_id
         AND g.platform = c.platform
         AND g.rate_group = c.rate_group
        LEFT JOIN in_channels n
          ON n.workspace_id = c.workspace_id
         AND n.channel_id = c.channel_id
        CROSS JOIN LATERAL (
            SELECT channel_opens_at(c, clock.now) AS opens_at, greatest(c.next_allowed_at, g.next_allowed_at) AS gate
        ) AS o
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN NOT c.enabled THEN 'disabled'
                WHEN c.paused_until > clock.now THEN 'paused'
                WHEN o.opens_at > clock.now THEN 'window_closed'
                WHEN o.gate > clock.now + interval '1 second' THEN 'cooling'
                WHEN n.sending >= c.max_parallel THEN 'full'
                ELSE 'open'
            END AS state
        ) AS s
    )
    SELECT jsonb_build_object(
        'at', clock.now,
        'window', p_window,
        'workspaces', coalesce((
            SELECT jsonb_agg(jsonb_build_object(
                'workspace_id', w.workspace_id,
                'name', w.name,
                'status', w.status,
                'counts', '{"queued": 0, "claimed": 0, "sending": 0, "retry": 0, "dead": 0, "failed_permanent": 0}'
                    || coalesce(counts.live, '{}') || coalesce(lost.counts, '{}') || coalesce(past.counts, '{}'),
                'held', coalesce(counts.held, 0),
                'skipped', coalesce(lost.skipped, 0),
                'oldest_due', oldest.due,
                'activity', coalesce(activity.counts, '{}'),
                'top_errors', coalesce(errors.top, '[]'),
                'channels', coalesce(states.list, '[]')
            ) ORDER BY w.name, w.workspace_id)
            FROM chosen w
            CROSS JOIN LATERAL (
                SELECT jsonb_object_agg(l.status, l.deliveries) AS live, sum(l.held) AS held
                FROM (
                    SELECT live.status, sum(live.deliveries) AS deliveries, sum(live.held) AS held
                    FROM live
                    WHERE live.workspace_id = w.workspace_id
                    GROUP BY live.status
                ) AS l
            ) AS counts
            CROSS JOIN LATERAL (
                SELECT jsonb_object_agg(g.status, g.deliveries) AS counts, sum(g.skipped) AS skipped
                FROM (
                    SELECT given_up.status, count(*) AS deliveries, count(given_up.skipped_at) AS skipped
                    FROM given_up
                    WHERE given_up.workspace_id = w.workspace_id
                    GROUP BY given_up.status
                ) AS g
            ) AS lost
            CROSS JOIN LATERAL (
                SELECT jsonb_object_agg(p.status, p.deliveries) AS counts
                FROM (
                    SELECT s.status, count(d.delivery_id) AS deliveries
                    FROM unnest('{sent,deduped}'::delivery_status[]) AS s (status)
                    LEFT JOIN deliveries d
                      ON d.workspace_id = w.workspace_id
                     AND d.status = s.status
                    WHERE p_history
                    GROUP BY s.status
                ) AS p
            ) AS past
            LEFT JOIN LATERAL (
                SELECT jsonb_build_object('channel_id', s.channel_id, 'due_at', s.oldest_due_at) AS due
                FROM channel_states s
                WHERE s.workspace_id = w.workspace_id
                  AND s.state NOT IN ('disabled', 'paused', 'window_closed')
                  AND s.oldest_due_at IS NOT NULL
                ORDER BY s.oldest_due_at, s.channel_id
                LIMIT 1
            ) AS oldest ON true
            CROSS JOIN LATERAL (
                SELECT jsonb_object_agg(a.action, a.events) AS counts
                FROM (
                    SELECT e.action, count(*) AS events
                    FROM events e
                    WHERE e.workspace_id = w.workspace_id
                      AND e.ts >= clock.now - p_window
                    GROUP BY e.action
                ) AS a
            ) AS activity
            CROSS JOIN LATERAL (
                SELECT jsonb_agg(to_jsonb(t) ORDER BY t.count DESC, t.last_at DESC) AS top
                FROM (
                    SELECT e.error ->> 'code' AS code, e.error ->> 'scope' AS scope, e.action, count(*) AS count,
                           max(e.ts) AS last_at
                    FROM events e
                    WHERE e.workspace_id = w.workspace_id
                      AND e.ts >= clock.now - p_window
                      AND e.result = 'error'
                    GROUP BY 1, 2, 3
                    ORDER BY count(*) DESC, max(e.ts) DESC
                    LIMIT p_top
                ) AS t
            ) AS errors
            CROSS JOIN LATERAL (
                SELECT jsonb_agg(jsonb_build_object(
                    'channel_id', s.channel_id, 'platform', s.platform, 'title', s.title, 'state', s.state,
                    'reason', closed.reason, 'until', s.until, 'waiting', coalesce(s.waiting, 0),
                    'held', coalesce(s.held, 0), 'sending', coalesce(s.sending, 0),
                    'oldest_due_at', s.oldest_due_at, 'error_streak', s.error_streak
                ) ORDER BY s.platform, s.title, s.channel_id) AS list
                FROM channel_states s
                LEFT JOIN LATERAL (
                    SELECT coalesce(e.error ->> 'code', e.meta ->> 'reason') AS reason
                    FROM events e
                    WHERE s.state IN ('disabled', 'paused')
                      AND e.workspace_id = s.workspace_id
                      AND e.channel_id = s.channel_id
                      AND e.delivery_id IS NULL
                      AND e.action = CASE s.state WHEN 'disabled' THEN 'channel_disabled' ELSE 'channel_paused'
                                     END::event_action
                    ORDER BY e.ts DESC
                    LIMIT 1
                ) AS closed ON true
                WHERE s.workspace_id = w.workspace_id
                  AND (p_workspace_id IS NOT NULL OR s.state <> 'open')
            ) AS states
        ), '[]'))
    FROM clock
$$;
