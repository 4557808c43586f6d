-- snapshot(workspace_id, window, top, history) -> the state of the queue, as one document
--
-- {"at", "window", "workspaces": [{"workspace_id", "name", "status",
--    "counts":      {"queued", "claimed", "sending", "retry", "dead", "failed_permanent"; with history also "sent",
--                    "deduped"},
--    "held":        of retry: waits for resolve_ambiguous      "skipped": of dead: an operator has looked
--    "oldest_due":  the longest ready post: {"channel_id", "due_at"}; without closed channels
--    "activity":    events of the window by action; of more than 100,000 the newest, and "activity_since" says from
--                   when
--    "top_errors":  [{"code", "scope", "action", "count", "last_at"}] of the window, the most frequent first
--    "channels":    [{"channel_id", "platform", "title", "state", "reason", "until", "waiting", "held", "sending",
--                     "oldest_due_at", "error_streak"}]}]}
--
-- state        disabled, paused, window_closed, outage (the platform does not answer its rate group), cooling (the group's or channel's gate is over a second away), full
--              (max_parallel), open: the first that applies. reason: the error or the operator's reason that closed
--              it. until: when it opens by itself; null when it does not, or when that depends on a send.
-- workspace_id null: all of them, and of the channels only those that are not open
--
-- Cost         live deliveries once (delivery_queue alone), the channels once, for each closed channel its last
--              closing; and see ended_counts and recent_activity
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
SET enable_bitmapscan = off SET enable_sort = off -- the events of the window along their index, up to the limit
AS $$
    WITH clock AS MATERIALIZED (
        SELECT clock_timestamp() AS now
    ), chosen AS MATERIALIZED (
        SELECT w.workspace_id, w.name, w.status
        FROM workspaces w
        WHERE p_workspace_id IS NULL OR w.workspace_id = p_workspace_id
    ), live AS MATERIALIZED (
        SELECT q.workspace_id, q.channel_id, q.status, count(*) AS deliveries,
               count(*) FILTER (WHERE q.status = 'retry' AND q.due_at = 'infinity') AS held,
               min(q.due_at) FILTER (WHERE q.status IN ('queued', 'retry') AND q.due_at <= clock.now) AS oldest_due_at
        FROM clock, chosen w
        JOIN delivery_queue q USING (workspace_id)
        GROUP BY q.workspace_id, q.channel_id, q.status
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
               n.sending, n.oldest_due_at, g.outage_error ->> 'code' AS outage,
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
                WHEN g.circuit <> 'closed' THEN 'outage'
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
                    || coalesce(counts.live, '{}') || ended.counts,
                'held', coalesce(counts.held, 0),
                'skipped', coalesce(ended.skipped, 0),
                'oldest_due', oldest.due,
                'activity', coalesce(activity.counts, '{}'),
                'activity_since', activity.since,
                'top_errors', coalesce(activity.top_errors, '[]'),
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
            CROSS JOIN LATERAL ended_counts(w.workspace_id, p_history) AS ended
            LEFT JOIN LATERAL (
                SELECT jsonb_build_object('channel_id', s.channel_id, 'due_at', s.oldest_due_at) AS due
                FROM channel_states s
                WHERE s.workspace_id = w.workspace_id
                  AND s.state NOT IN ('disabled', 'paused', 'window_closed')
                  AND s.oldest_due_at IS NOT NULL
                ORDER BY s.oldest_due_at, s.channel_id
                LIMIT 1
            ) AS oldest ON true
            CROSS JOIN LATERAL recent_activity(w.workspace_id, clock.now - p_window, p_top) AS activity
            CROSS JOIN LATERAL (
                SELECT jsonb_agg(jsonb_build_object(
                    'channel_id', s.channel_id, 'platform', s.platform, 'title', s.title, 'state', s.state,
                    'reason', coalesce(closed.reason, s.outage), 'until', s.until, 'waiting', coalesce(s.waiting, 0),
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
                      AND e.action = ('channel_' || s.state)::event_action
                    ORDER BY e.ts DESC
                    LIMIT 1
                ) AS closed ON true
                WHERE s.workspace_id = w.workspace_id
                  AND (p_workspace_id IS NOT NULL OR s.state <> 'open')
            ) AS states
        ), '[]'))
    FROM clock
$$;
