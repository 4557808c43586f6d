-- why_message_history(workspace_id, message_id, limit) -> the timeline of a message, the oldest first, as a JSON list
--
-- How it came in, what was recorded of it (other tags, channels that had it already), and what its deliveries did.
-- Events that one transaction wrote for the same reason are one line: a post to forty channels is enqueued once. Of a
-- long one the first line and the last `limit`, built from the last fifty events per line.
--
-- [{"at", "after_ms" since the line before, "of": "message" | "delivery", "action", "count" when it is more than one,
--   "attempt", "result", "code"; of one alone also "message", "operator", "reason", "until", "provider_message_id",
--   "payload_ref", "channel", "delivery_id", "twin"; of the first line, "ingested", "run_id" and "reason": the kind of
--   its run}],
-- without what is null
CREATE OR REPLACE FUNCTION why_message_history(p_workspace_id uuid, p_message_id uuid, p_limit int)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH its AS MATERIALIZED (
        SELECT m.created_at, m.first_ingest_run_id
        FROM messages m
        WHERE m.workspace_id = p_workspace_id
          AND m.message_id = p_message_id
    ), told AS (
        (
            SELECT e.*
            FROM its
            JOIN events e ON e.ts >= its.created_at - interval '1 minute'
            WHERE e.message_id = p_message_id
              AND e.delivery_id IS NULL
              AND e.workspace_id = p_workspace_id
            ORDER BY e.seq DESC
            LIMIT 50 * p_limit::bigint
        )
        UNION ALL
        SELECT e.*
        FROM deliveries d
        CROSS JOIN LATERAL (
            SELECT e.*
            FROM events e
            WHERE e.delivery_id = d.delivery_id
              AND e.workspace_id = d.workspace_id
            ORDER BY e.seq DESC
            LIMIT p_limit
        ) AS e
        WHERE d.workspace_id = p_workspace_id
          AND d.message_id = p_message_id
    ), grouped AS (
        SELECT min(e.seq) AS seq, min(e.ts) AS ts, e.action, e.result, e.error ->> 'code' AS code, count(*) AS count,
               max(e.attempt) AS attempt, bool_and(e.delivery_id IS NULL) AS of_message,
               (array_agg(e.error ORDER BY e.seq))[1] AS error, (array_agg(e.meta ORDER BY e.seq))[1] AS meta,
               min(e.payload_ref) AS payload_ref, (array_agg(e.channel_id))[1] AS channel_id,
               (array_agg(e.delivery_id))[1] AS delivery_id
        FROM told e
        GROUP BY e.xid, e.action, e.result, e.error ->> 'code'
        ORDER BY min(e.seq) DESC
        LIMIT p_limit
    ), lines AS (
        SELECT g.seq, g.ts,
               jsonb_build_object(
                   'of', CASE WHEN g.of_message THEN 'message' ELSE 'delivery' END,
                   'action', g.action,
                   'count', CASE WHEN g.count > 1 THEN g.count END,
                   'attempt', CASE WHEN NOT g.of_message THEN g.attempt END,
                   'result', g.result,
                   'code', g.code)
               || CASE WHEN g.count > 1 THEN '{}' ELSE jsonb_build_object(
                   'message', g.error ->> 'message',
                   'operator', g.meta ->> 'operator',
                   'reason', coalesce(g.meta ->> 'note', g.meta ->> 'reason'),
                   'until', coalesce(g.meta ->> 'next_retry_at', g.meta ->> 'paused_until'),
                   'provider_message_id', g.meta ->> 'provider_message_id',
                   'payload_ref', g.payload_ref,
                   'channel', coalesce(c.title, c.target_id),
                   'delivery_id', g.delivery_id,
                   'twin', g.meta ->> 'twin') END AS shown
        FROM grouped g
        LEFT JOIN channels c
          ON c.workspace_id = p_workspace_id
         AND c.channel_id = g.channel_id
        UNION ALL
        SELECT 0, its.created_at,
               jsonb_build_object('of', 'message', 'action', 'ingested', 'run_id', its.first_ingest_run_id,
                                  'reason', r.kind)
        FROM its
        LEFT JOIN ingest_runs r
          ON r.workspace_id = p_workspace_id
         AND r.run_id = its.first_ingest_run_id
    )
    SELECT coalesce(jsonb_agg(t.shown ORDER BY t.seq), '[]')
    FROM (
        SELECT l.seq,
               jsonb_strip_nulls(jsonb_build_object(
                   'at', l.ts,
                   'after_ms', round(extract(epoch FROM l.ts - lag(l.ts) OVER (ORDER BY l.seq)) * 1000)) || l.shown) AS shown
        FROM lines l
    ) AS t
$$;
