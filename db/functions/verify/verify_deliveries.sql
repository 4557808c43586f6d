-- verify_deliveries(workspace_id, after, limit, most) -> differences between the next deliveries and their events
--
-- Walks the deliveries of a workspace by key: pass last_id as `after` until nothing was checked. One call is one
-- statement, so a row and its events are read as of one moment, despite concurrent writes.
--
-- checked, found   how many deliveries were looked at, and how many differences there are
-- differences      [{"kind", "delivery_id", "events", "row"}], at most `most` of them
-- kind   status, attempt, max_attempts, provider_message_id, sent_at, slot_at, next_retry_at, created_at,
--        sending_started_at
--                  the row is not what its events add up to (fold_deliveries)
--        event_count   an event is missing, also the last one, or was written after the row
--        no_events     it has no event
--        order         the log itself is wrong: see problems of fold_deliveries
--        message, channel, rendering     what the row or its events refer to is missing, or is not the same
--        queue, dead_letters, skipped        the narrow tables beside it disagree; see related_rows
--        progress      its acknowledged parts: see progress_problem
--        early         its last attempt was claimed before it was scheduled
--
-- Near     events give sent_at, created_at, sending_started_at and a requeue by the time of their own writing, a little
--          after the row's: they may be `slack` apart. The other times are exact. A sent delivery does not change
--          afterwards, so sent_at is also, exactly, when the row last changed.
-- Claimed  a claim by hand leaves no event: the events say queued or retry
CREATE OR REPLACE FUNCTION verify_deliveries(
    p_workspace_id uuid,
    p_after uuid,
    p_limit int DEFAULT 1000,
    p_most int DEFAULT 100,
    p_slack interval DEFAULT '1 minute'
)
RETURNS TABLE (checked bigint, last_id uuid, found bigint, differences jsonb)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH page AS MATERIALIZED (
        SELECT d.delivery_id, d.message_id, d.channel_id, d.rendering_id, d.status, d.attempt, d.provider_message_id,
               d.sent_at, d.slot_at, d.next_retry_at, d.created_at, d.sending_started_at, d.event_count,
               d.max_attempts, d.updated_at, d.scheduled_for, d.render_meta -> 'series_progress' AS progress
        FROM deliveries d
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id > p_after
        ORDER BY d.delivery_id
        LIMIT p_limit
    ), folded AS MATERIALIZED (
        SELECT f.*
        FROM fold_deliveries(p_workspace_id, ARRAY(SELECT delivery_id FROM page)) AS f
    ), seen AS MATERIALIZED (
        SELECT p.*, f AS fold, f.delivery_id IS NOT NULL AS has_events, r.is_queued, r.is_taken, r.queued_for,
               r.dead_letters, r.skipped_at, r.has_message, r.has_channel, r.has_rendering, r.calls
        FROM page p
        LEFT JOIN folded f USING (delivery_id)
        JOIN related_rows(
            p_workspace_id, p_after, (SELECT p.delivery_id FROM page p ORDER BY p.delivery_id DESC LIMIT 1)
        ) AS r USING (delivery_id)
    ), differences AS MATERIALIZED (
        SELECT s.delivery_id, x.kind, x.told, x.found
        FROM seen s
        CROSS JOIN LATERAL (
            SELECT 'no_events' AS kind, NULL AS told, s.status::text AS found
            WHERE NOT s.has_events
            UNION ALL
            SELECT 'order', array_to_string((s.fold).problems, '; '), s.status::text
            WHERE s.has_events AND cardinality((s.fold).problems) > 0
            UNION ALL
            SELECT 'event_count', (s.fold).event_count::text, s.event_count::text
            WHERE s.has_events AND (s.fold).event_count <> s.event_count
            UNION ALL
            SELECT 'status', (s.fold).status::text, s.status::text
            WHERE s.has_events
              AND (s.fold).status IS DISTINCT FROM s.status
              AND NOT (s.status = 'claimed' AND (s.fold).status IN ('queued', 'retry'))
            UNION ALL
            SELECT 'attempt', (s.fold).attempt::text, s.attempt::text
            WHERE s.has_events AND (s.fold).attempt IS DISTINCT FROM s.attempt
            UNION ALL
            SELECT 'max_attempts', (s.fold).max_attempts::text, s.max_attempts::text
            WHERE (s.fold).max_attempts <> s.max_attempts
            UNION ALL
            SELECT 'provider_message_id', (s.fold).provider_message_id, s.provider_message_id
            WHERE s.has_events AND (s.fold).provider_message_id IS DISTINCT FROM s.provider_message_id
            UNION ALL
            SELECT 'sent_at', (s.fold).sent_at::text, s.sent_at::text
            WHERE s.has_events
              AND (NOT same_time((s.fold).sent_at, s.sent_at, p_slack)
                   OR (s.status = 'sent' AND s.sent_at IS DISTINCT FROM s.updated_at))
            UNION ALL
            SELECT 'slot_at', (s.fold).slot_at::text, s.slot_at::text
            WHERE s.has_events AND (s.fold).slot_at IS DISTINCT FROM s.slot_at
            UNION ALL
            SELECT 'next_retry_at', (s.fold).next_retry_at::text, s.next_retry_at::text
            WHERE s.status = 'retry'
              AND (s.fold).status = 'retry'
              AND NOT same_time((s.fold).next_retry_at, s.next_retry_at,
                              CASE WHEN (s.fold).retry_is_near THEN p_slack ELSE interval '0' END)
            UNION ALL
            SELECT 'created_at', (s.fold).began_at::text, s.created_at::text
            WHERE (s.fold).began_at IS NOT NULL AND NOT same_time((s.fold).began_at, s.created_at, p_slack)
            UNION ALL
            SELECT 'sending_started_at', (s.fold).sending_at::text, s.sending_started_at::text
            WHERE s.status = 'sending'
              AND (s.fold).sending_at IS NOT NULL
              AND NOT same_time((s.fold).sending_at, s.sending_started_at, p_slack)
            UNION ALL
            SELECT 'message', (s.fold).message_id::text, s.message_id::text
            WHERE NOT s.has_message OR (s.has_events AND (s.fold).message_id IS DISTINCT FROM s.message_id)
            UNION ALL
            SELECT 'channel', (s.fold).channel_id::text, s.channel_id::text
            WHERE NOT s.has_channel OR (s.has_events AND (s.fold).channel_id IS DISTINCT FROM s.channel_id)
            UNION ALL
            SELECT 'rendering', NULL, s.rendering_id::text
            WHERE NOT s.has_rendering
            UNION ALL
            SELECT 'progress', progress_problem(s.progress, s.calls, (s.fold).parts), s.progress::text
            WHERE progress_problem(s.progress, s.calls, (s.fold).parts) IS NOT NULL
            UNION ALL
            SELECT 'early', greatest((s.fold).sending_at, (s.fold).slot_at)::text, s.scheduled_for::text
            WHERE greatest((s.fold).sending_at, (s.fold).slot_at) < s.scheduled_for - interval '1 second'
            UNION ALL
            SELECT 'queue',
                   CASE
                       WHEN NOT s.is_queued THEN 'not queued'
                       WHEN s.queued_for <> s.channel_id THEN 'queued for ' || s.queued_for
                       WHEN s.is_taken THEN 'taken'
                       ELSE 'waiting'
                   END,
                   s.status::text
            WHERE s.is_queued <> (s.status IN ('queued', 'retry', 'claimed', 'sending'))
               OR (s.is_queued AND (s.is_taken = (s.status IN ('queued', 'retry')) OR s.queued_for <> s.channel_id))
            UNION ALL
            SELECT 'dead_letters', s.dead_letters::text, s.status::text
            WHERE s.dead_letters IS DISTINCT FROM CASE WHEN s.status IN ('dead', 'failed_permanent') THEN s.status END
            UNION ALL
            SELECT 'skipped', (s.fold).skipped::text, s.skipped_at::text
            WHERE s.has_events AND (s.fold).skipped <> (s.skipped_at IS NOT NULL)
        ) AS x
    )
    SELECT (SELECT count(*) FROM page),
           (SELECT p.delivery_id FROM page p ORDER BY p.delivery_id DESC LIMIT 1),
           (SELECT count(*) FROM differences),
           coalesce((
               SELECT jsonb_agg(jsonb_build_object(
                   'kind', l.kind, 'delivery_id', l.delivery_id, 'events', l.told, 'row', l.found
               ) ORDER BY l.delivery_id, l.kind)
               FROM (SELECT * FROM differences d ORDER BY d.delivery_id, d.kind LIMIT p_most) AS l
           ), '[]')
$$;
