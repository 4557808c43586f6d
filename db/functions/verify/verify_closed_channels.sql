-- verify_closed_channels(workspace_id, after_ts, after_id, last_ts, last_id)
-- -> claims of a page of events in channels that were closed then
--
-- kind   disabled   by the log the channel was disabled then
--        paused     by the log the channel was paused beyond that moment
CREATE OR REPLACE FUNCTION verify_closed_channels(
    p_workspace_id uuid,
    p_after_ts timestamptz,
    p_after_id uuid,
    p_last_ts timestamptz,
    p_last_id uuid
)
RETURNS TABLE (kind text, event_id uuid, delivery_id uuid, channel_id uuid, told text, found text)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH taken AS MATERIALIZED (
        SELECT s.* FROM send_attempts(p_workspace_id, p_after_ts, p_after_id, p_last_ts, p_last_id) AS s
    ), turned AS MATERIALIZED (
        SELECT k.channel_id, e.ts, e.action, e.meta
        FROM (SELECT DISTINCT t.channel_id FROM taken t) AS k
        CROSS JOIN LATERAL (
            SELECT e.ts, e.action, e.meta
            FROM events e
            WHERE e.workspace_id = p_workspace_id
              AND e.channel_id = k.channel_id
              AND e.delivery_id IS NULL
              AND e.ts <= p_last_ts
              AND e.action IN ('channel_paused', 'channel_disabled', 'channel_enabled')
            ORDER BY e.ts DESC
            LIMIT 200
        ) AS e
    ), histories AS (
        SELECT h.*,
               max(h.ts) FILTER (WHERE h.action = 'channel_disabled') OVER w AS disabled_at,
               max(h.ts) FILTER (WHERE h.action = 'channel_enabled' AND NOT h.meta @> '{"enabled": false}') OVER w
                   AS enabled_at,
               count(*) FILTER (WHERE h.action = 'channel_enabled') OVER w AS openings
        FROM (
            SELECT t.ts, t.id, t.delivery_id, t.channel_id, greatest(t.ts, t.slot_at) AS at,
                   NULL::event_action AS action, NULL::jsonb AS meta
            FROM taken t
            WHERE EXISTS (SELECT 1 FROM turned)
            UNION ALL
            SELECT u.ts, NULL, NULL, u.channel_id, NULL, u.action, u.meta
            FROM turned u
        ) AS h
        WINDOW w AS (PARTITION BY h.channel_id ORDER BY h.ts, h.action NULLS FIRST)
    ), closed AS (
        SELECT h.*, max((h.meta ->> 'paused_until')::timestamptz) FILTER (WHERE h.action = 'channel_paused')
                        OVER (PARTITION BY h.channel_id, h.openings ORDER BY h.ts, h.action NULLS FIRST) AS paused_until
        FROM histories h
    )
    SELECT 'disabled', c.id, c.delivery_id, c.channel_id, 'channel_disabled', c.ts::text
    FROM closed c
    WHERE c.action IS NULL AND c.disabled_at > coalesce(c.enabled_at, '-infinity')
    UNION ALL
    SELECT 'paused', c.id, c.delivery_id, c.channel_id, 'until ' || c.paused_until, c.at::text
    FROM closed c
    WHERE c.action IS NULL AND c.paused_until > c.at
$$;
