-- read_post(workspace_id, run_id, message_id, post_id, limit) -> what became of a post
--
-- Arguments as find_post gives them.
--
-- {"state", "channels": of post_state, "post_id", "run_id", "trace_id", "message_id", "source_ref", "accepted_at",
--  "finished_at": of its run, "stats": of its run, "staged": {"status", "attempt", "next_attempt_at", "error",
--  "accepted_at", "finished_at"} | null,
--  "deliveries": the first `limit`, by channel: [{"delivery_id", "channel_id", "title", "platform", "status",
--                "scheduled_for", "attempts", "next_try_at", "sent_at", "provider_message_id", "link",
--                "reason": {"code", "message"} | null}],
--  "more_deliveries": how many are not shown,
--  "suppressed": [{"channel_id", "title", "platform", "delivery_id": the one that the channel had}]: by this request}
CREATE OR REPLACE FUNCTION read_post(
    p_workspace_id uuid,
    p_run_id uuid,
    p_message_id uuid,
    p_post_id uuid,
    p_limit int
)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH delivery AS MATERIALIZED (
        SELECT d.*, c.title, c.platform, c.target_id,
               row_number() OVER (ORDER BY c.platform, c.title, d.channel_id, d.created_at) AS place
        FROM request_deliveries(p_workspace_id, p_run_id, p_message_id) AS r
        CROSS JOIN LATERAL (
            SELECT d.*
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = r.delivery_id
            OFFSET 0
        ) AS d
        LEFT JOIN channels c
          ON c.workspace_id = p_workspace_id
         AND c.channel_id = d.channel_id
    )
    SELECT jsonb_build_object(
        'state', s.state, 'channels', s.channels, 'post_id', p_post_id, 'run_id', p_run_id,
        'trace_id', coalesce(r.trace_id, m.first_seen_trace_id), 'message_id', p_message_id,
        'source_ref', coalesce(r.source_ref, quoted(m.source_ref, 256)),
        'accepted_at', coalesce(r.started_at, m.created_at), 'finished_at', r.finished_at,
        'stats', coalesce(r.stats_json, '{}'),
        'staged', CASE WHEN t.post_id IS NOT NULL THEN jsonb_build_object(
            'status', t.status, 'attempt', t.attempt,
            'next_attempt_at', CASE WHEN t.status = 'staged' THEN t.next_attempt_at END,
            'error', t.last_error, 'accepted_at', t.created_at, 'finished_at', t.finished_at) END,
        'deliveries', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'delivery_id', d.delivery_id, 'channel_id', d.channel_id, 'title', d.title, 'platform', d.platform,
                'status', d.status, 'scheduled_for', d.scheduled_for, 'attempts', d.attempt,
                'next_try_at', CASE
                    WHEN d.status IN ('queued', 'retry')
                         AND isfinite(delivery_due_at(d.status, d.not_before, d.scheduled_for, d.next_retry_at))
                        THEN delivery_due_at(d.status, d.not_before, d.scheduled_for, d.next_retry_at) END,
                'sent_at', d.sent_at, 'provider_message_id', d.provider_message_id,
                'link', message_link(d.platform, d.target_id, d.provider_message_id),
                'reason', CASE
                    WHEN d.status = 'sent' THEN NULL
                    WHEN d.hold_reason IS NOT NULL THEN jsonb_build_object(
                        'code', d.hold_reason, 'message', 'perhaps sent; an operator looks into the channel')
                    WHEN d.last_error IS NOT NULL THEN jsonb_build_object(
                        'code', d.last_error -> 'code',
                        'message', coalesce(d.last_error -> 'message', d.last_error #> '{problems,0,message}'))
                END) ORDER BY d.place), '[]')
            FROM delivery d
            WHERE d.place <= p_limit
        ),
        'more_deliveries', (SELECT greatest(count(*) - p_limit, 0) FROM delivery),
        'suppressed', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'channel_id', e.channel_id, 'title', c.title, 'platform', c.platform, 'delivery_id', e.twin)), '[]')
            FROM (
                SELECT e.channel_id, e.twin
                FROM (
                    SELECT e.workspace_id, e.channel_id, e.action, e.meta ->> 'run_id' AS run_id,
                           e.meta ->> 'twin' AS twin
                    FROM events e
                    WHERE e.message_id = p_message_id
                      AND e.delivery_id IS NULL
                      AND e.ts BETWEEN r.started_at - interval '1 day' AND coalesce(r.finished_at, 'infinity')
                                                                             + interval '1 day'
                    OFFSET 0
                ) AS e
                WHERE e.workspace_id = p_workspace_id
                  AND e.action = 'dedup_suppressed'
                  AND e.run_id = p_run_id::text
                LIMIT p_limit
            ) AS e
            LEFT JOIN channels c
              ON c.workspace_id = p_workspace_id
             AND c.channel_id = e.channel_id
        ))
    FROM post_state(p_workspace_id, p_run_id, p_message_id, p_post_id) AS s
    LEFT JOIN ingest_runs r
      ON r.workspace_id = p_workspace_id
     AND r.run_id = p_run_id
    LEFT JOIN messages m
      ON m.workspace_id = p_workspace_id
     AND m.message_id = p_message_id
    LEFT JOIN staged_posts t
      ON t.workspace_id = p_workspace_id
     AND t.post_id = p_post_id
$$;
