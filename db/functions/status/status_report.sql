-- status_report(workspace_id, window) -> all that the status page shows, as one document
--
-- {"at", "window", "workspaces": as snapshot has them,
--  "rates":   [{"workspace_id", "platform", "rate_group", "channels", "used", "allowed", "until", "away"}]   calls per second
--  "bots":    as bot_counts has them
--  "publications": as publication_counts has them
--  "staged":  [{"workspace_id", "waiting", "oldest_at"}]       accepted, media still to be fetched
--  "alerts":  [{"alert_id", "workspace_id", "condition", "count", "threshold", "since", "opened_at", "causes"}]   open
--  "notices": [{"target", "waiting", "oldest_at", "error"}]    of alerts, not delivered yet
--  "relay":   as relay_lag has it}
--
-- workspace_id   null is everything, for the operator only. A workspace sees nothing of another one, and of the
--                installation only the lag of the audit stream.
--
-- Cost           that of snapshot, and the sends of the last ten seconds
CREATE OR REPLACE FUNCTION status_report(p_workspace_id uuid DEFAULT NULL, p_window interval DEFAULT '10 minutes')
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT snapshot(p_workspace_id, p_window) || jsonb_build_object(
        'rates', (
            SELECT coalesce(jsonb_agg(to_jsonb(r) ORDER BY r.used / coalesce(r.allowed, 1e9) DESC, r.workspace_id,
                                      r.platform, r.rate_group), '[]')
            FROM rates_used(p_workspace_id, '10 seconds') AS r
        ),
        'bots', (
            SELECT coalesce(jsonb_agg(to_jsonb(b) ORDER BY b.workspace_id), '[]')
            FROM bot_counts(p_workspace_id) AS b
        ),
        'publications', (
            SELECT coalesce(jsonb_agg(to_jsonb(p) ORDER BY p.workspace_id), '[]')
            FROM publication_counts(p_workspace_id) AS p
        ),
        'staged', (
            SELECT coalesce(jsonb_agg(to_jsonb(s) ORDER BY s.oldest_at), '[]')
            FROM (
                SELECT p.workspace_id, count(*) AS waiting, min(p.created_at) AS oldest_at
                FROM staged_posts p
                WHERE p.status IN ('staged', 'fetching')
                  AND (p_workspace_id IS NULL OR p.workspace_id = p_workspace_id)
                GROUP BY p.workspace_id
            ) AS s
        ),
        'alerts', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'alert_id', a.alert_id,
                'workspace_id', nullif(a.workspace_id, '00000000-0000-0000-0000-000000000000'),
                'condition', a.condition, 'count', a.occurrences, 'threshold', a.threshold, 'since', a.since,
                'opened_at', a.opened_at, 'causes', a.causes) ORDER BY a.opened_at, a.condition), '[]')
            FROM alerts a
            WHERE a.recovered_at IS NULL
              AND (p_workspace_id IS NULL OR a.workspace_id = p_workspace_id)
        ),
        'notices', (
            SELECT coalesce(jsonb_agg(to_jsonb(n) ORDER BY n.target), '[]')
            FROM (
                SELECT n.target, count(*) AS waiting, min(n.created_at) AS oldest_at,
                       (array_agg(n.last_error ORDER BY n.place))[1] AS error
                FROM alert_notices n
                WHERE p_workspace_id IS NULL
                  AND n.delivered_at IS NULL
                  AND n.superseded_at IS NULL
                GROUP BY n.target
            ) AS n
        ),
        'relay', (
            SELECT CASE WHEN p_workspace_id IS NULL THEN to_jsonb(l) ELSE jsonb_build_object('seconds', l.seconds) END
            FROM relay_lag() AS l
        ))
$$;
