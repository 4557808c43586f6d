-- why_history(workspace_id, delivery_id, channel_id, from, to, limit) -> a timeline, the oldest first, as a JSON list
--
-- The events of a delivery, and those of a channel itself between `from` and `to`; either may be null. Of a long one
-- the last `limit` events.
--
-- [{"at", "after_ms" since the event before, "of": "delivery" | "channel", "action", "attempt", "result", "code",
--   "message", "operator", "reason", "until", "provider_message_id", "payload_ref"}], without what is null
CREATE OR REPLACE FUNCTION why_history(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_channel_id uuid,
    p_from timestamptz,
    p_to timestamptz,
    p_limit int
)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH told AS (
        (
            SELECT e.*
            FROM events e
            WHERE e.delivery_id = p_delivery_id
              AND e.workspace_id = p_workspace_id
            ORDER BY e.seq DESC
            LIMIT p_limit
        )
        UNION ALL
        (
            SELECT e.*
            FROM events e
            WHERE e.channel_id = p_channel_id
              AND e.delivery_id IS NULL
              AND e.message_id IS NULL
              AND e.workspace_id = p_workspace_id
              AND e.ts BETWEEN p_from AND p_to
            ORDER BY e.ts DESC
            LIMIT p_limit
        )
    )
    SELECT coalesce(jsonb_agg(t.shown ORDER BY t.seq), '[]')
    FROM (
        SELECT e.seq,
               jsonb_strip_nulls(jsonb_build_object(
                   'at', e.ts,
                   'after_ms', round(extract(epoch FROM e.ts - lag(e.ts) OVER (ORDER BY e.seq)) * 1000),
                   'of', CASE WHEN e.delivery_id IS NULL THEN 'channel' ELSE 'delivery' END,
                   'action', e.action,
                   'attempt', CASE WHEN e.delivery_id IS NOT NULL THEN e.attempt END,
                   'result', e.result,
                   'code', e.error ->> 'code',
                   'message', e.error ->> 'message',
                   'operator', e.meta ->> 'operator',
                   'reason', coalesce(e.meta ->> 'note', e.meta ->> 'reason'),
                   'until', coalesce(e.meta ->> 'next_retry_at', e.meta ->> 'paused_until'),
                   'provider_message_id', e.meta ->> 'provider_message_id',
                   'payload_ref', e.payload_ref)) AS shown
        FROM told e
        ORDER BY e.seq DESC
        LIMIT p_limit
    ) AS t
$$;
