-- recent_errors(workspace_id, window, limit) -> the latest errors, the newest first
--
-- The events with result `error` of the last `window`, at most `limit` of them. The same, counted by code, is in
-- snapshot(…) -> top_errors.
CREATE OR REPLACE FUNCTION recent_errors(
    p_workspace_id uuid,
    p_window interval DEFAULT '30 minutes',
    p_limit int DEFAULT 200
)
RETURNS TABLE (
    ts timestamptz,
    action event_action,
    channel_id uuid,
    channel_title text,
    delivery_id uuid,
    attempt int,
    error jsonb,
    meta jsonb
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT e.ts, e.action, e.channel_id, c.title, e.delivery_id, e.attempt, e.error, e.meta
    FROM events e
    LEFT JOIN channels c
      ON c.workspace_id = e.workspace_id
     AND c.channel_id = e.channel_id
    WHERE e.workspace_id = p_workspace_id
      AND e.ts >= (SELECT clock_timestamp() - p_window)
      AND e.result = 'error'
    ORDER BY e.ts DESC, e.seq DESC
    LIMIT p_limit
$$;
