-- why_show_message(workspace_id, message_id, limit, now) -> the answer of `autopost why` for a message
--
-- {"kind": "message", "workspace_id", "message_id", "created_at", "last_seen_at", "seen_count", "source_ref", "tags",
--  "trace_id", "run_id",
--  "states":     [{"status", "gate" | "outcome", "count"}]: all its deliveries, those that are held first,
--  "deliveries": [{"delivery_id", "channel_id", "title", "status", "gate", "since", "until", "released_by", "command",
--                  "cause", "outcome", "at", "detail"}]: the first `limit` of them, in the same order,
--  "total",
--  "suppressed": [{"channel_id", "title", "twin", "at"}]: the channels that had it already when it was posted again, by
--                which delivery and when that was last, the newest `limit`,
--  "elsewhere":  [{"channel_id", "platform", "title", "kept_by"}]: channels without a delivery, the first `limit`,
--  "elsewhere_total",
--  "history":    why_message_history}
--
-- kept_by      as preview_post names it, by the current rules; "not asked for" when these would let it pass: the
--              channel was added or changed later, or the post itself limited its channels (that is not stored)
-- Null for a message that does not exist, or that the caller may not see.
CREATE OR REPLACE FUNCTION why_show_message(
    p_workspace_id uuid,
    p_message_id uuid,
    p_limit int,
    p_now timestamptz DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH its AS MATERIALIZED (
        SELECT m.*
        FROM messages m
        WHERE m.workspace_id = p_workspace_id
          AND m.message_id = p_message_id
          AND sees_workspace(p_workspace_id)
    ), went AS MATERIALIZED (
        SELECT d.delivery_id, d.channel_id, d.status, c.platform, c.title
        FROM its m
        JOIN deliveries d
          ON d.workspace_id = m.workspace_id
         AND d.message_id = m.message_id
        JOIN channels c
          ON c.workspace_id = d.workspace_id
         AND c.channel_id = d.channel_id
    ), told AS MATERIALIZED (
        SELECT w.*, g.gate, e.outcome,
               jsonb_strip_nulls(to_jsonb(w) || coalesce(to_jsonb(g), '{}') || coalesce(to_jsonb(e), '{}')) AS shown,
               coalesce(array_position(why_precedence(), g.gate), 100) AS rank
        FROM went w
        LEFT JOIN why_delivery(p_workspace_id, ARRAY(SELECT delivery_id FROM went), p_now) AS g USING (delivery_id)
        LEFT JOIN why_ended(p_workspace_id, ARRAY(SELECT delivery_id FROM went), p_now) AS e USING (delivery_id)
    ), elsewhere AS MATERIALIZED (
        SELECT c.shown, row_number() OVER () AS nth
        FROM its m
        CROSS JOIN LATERAL preview_post(m.workspace_id, NULL, jsonb_build_object(
            'tags', m.tags, 'payload', m.payload, 'hash_version', m.hash_version), NULL) AS p (shown)
        CROSS JOIN LATERAL jsonb_array_elements(p.shown -> 'channels') AS c (shown)
        WHERE (c.shown ->> 'channel_id')::uuid NOT IN (SELECT channel_id FROM went)
    )
    SELECT jsonb_build_object(
        'kind', 'message', 'workspace_id', m.workspace_id, 'message_id', m.message_id, 'created_at', m.created_at,
        'last_seen_at', m.last_seen_at, 'seen_count', m.seen_count, 'source_ref', quoted(m.source_ref, 256),
        'tags', quoted_all(to_jsonb(m.tags)),
        'trace_id', m.first_seen_trace_id, 'run_id', m.first_ingest_run_id,
        'states', (
            SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                'status', s.status, 'gate', s.gate, 'outcome', s.outcome, 'count', s.count)) ORDER BY s.rank, s.status,
                s.outcome), '[]')
            FROM (
                SELECT t.status, t.gate, t.outcome, t.rank, count(*) AS count
                FROM told t
                GROUP BY t.status, t.gate, t.outcome, t.rank
            ) AS s
        ),
        'deliveries', (
            SELECT coalesce(jsonb_agg(t.shown ORDER BY t.rank, t.status, t.title, t.delivery_id), '[]')
            FROM (SELECT * FROM told ORDER BY rank, status, title, delivery_id LIMIT p_limit) AS t
        ),
        'total', (SELECT count(*) FROM told),
        'suppressed', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'channel_id', s.channel_id, 'title', s.title, 'twin', s.twin, 'at', s.ts) ORDER BY s.ts, s.title), '[]')
            FROM (
                SELECT e.channel_id, c.title, e.twin, e.ts
                FROM (
                    SELECT DISTINCT ON (e.channel_id) e.workspace_id, e.channel_id, e.meta ->> 'twin' AS twin, e.ts
                    FROM events e
                    WHERE e.workspace_id = m.workspace_id
                      AND e.ts >= m.created_at - interval '1 minute'
                      AND e.message_id = m.message_id
                      AND e.delivery_id IS NULL
                      AND e.action = 'dedup_suppressed'
                    ORDER BY e.channel_id, e.seq DESC
                ) AS e
                JOIN channels c USING (workspace_id, channel_id)
                ORDER BY e.ts DESC, c.title
                LIMIT p_limit
            ) AS s
        ),
        'elsewhere', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'channel_id', x.shown -> 'channel_id', 'platform', x.shown -> 'platform', 'title', x.shown -> 'title',
                'kept_by', CASE WHEN x.shown -> 'kept_by' = '[]' THEN '["not asked for"]' ELSE x.shown -> 'kept_by' END
            ) ORDER BY x.nth), '[]')
            FROM elsewhere x
            WHERE x.nth <= p_limit
        ),
        'elsewhere_total', (SELECT count(*) FROM elsewhere),
        'history', why_message_history(m.workspace_id, m.message_id, p_limit))
    FROM its m
$$;
