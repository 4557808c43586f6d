-- reschedule_post(workspace_id, run_id, message_id, post_id, at, signature)
-- -> {"verdict", "deliveries": [{"delivery_id", "channel_id", "title", "platform", "verdict", "status"}]}
--
-- Gives what a request posted another time, where no call was made yet.
--
-- at           null: as soon as possible; a year ahead at most
-- verdict      of a delivery: rescheduled | too_late (it was tried, or is being sent: unchanged) | already (it has ended)
--              as a whole: the first of rescheduled, too_late, already that any has; too_far
-- Changes      deliveries.scheduled_for of queued ones; the request of a staged post
-- Appends      rescheduled, with both times
-- Locks        staged_posts, messages, deliveries and their triggers' tables: each by key
CREATE OR REPLACE FUNCTION reschedule_post(
    p_workspace_id uuid,
    p_run_id uuid,
    p_message_id uuid,
    p_post_id uuid,
    p_at timestamptz,
    p_signature jsonb
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _message_id uuid := p_message_id;
    _staged staged_posts;
    _ids uuid[];
    _told jsonb;
BEGIN
    IF p_at > clock_timestamp() + interval '1 year' THEN
        RETURN '{"verdict": "too_far", "deliveries": []}';
    END IF;
    IF p_post_id IS NOT NULL THEN
        SELECT s.*
        INTO _staged
        FROM staged_posts s
        WHERE s.workspace_id = p_workspace_id
          AND s.post_id = p_post_id
        FOR UPDATE;
        _message_id := _staged.message_id;
        IF _staged.status = 'staged' THEN
            UPDATE staged_posts s
            SET request = s.request || jsonb_build_object('scheduled_for', p_at)
            WHERE s.workspace_id = p_workspace_id
              AND s.post_id = p_post_id;
            INSERT INTO events (workspace_id, action, attempt, meta)
            VALUES (p_workspace_id, 'rescheduled', _staged.attempt, staged_origin(_staged) || p_signature
                || jsonb_build_object('from', _staged.request -> 'scheduled_for', 'to', p_at));
            RETURN '{"verdict": "rescheduled", "deliveries": []}';
        ELSIF _staged.status = 'fetching' THEN
            RETURN '{"verdict": "too_late", "deliveries": []}';
        END IF;
    END IF;

    _ids := ARRAY(SELECT r.delivery_id FROM request_deliveries(p_workspace_id, p_run_id, _message_id) AS r);
    PERFORM 1
    FROM messages m
    WHERE m.workspace_id = p_workspace_id
      AND m.message_id = _message_id
    FOR NO KEY UPDATE;
    PERFORM 1
    FROM (SELECT unnest(_ids) AS delivery_id ORDER BY 1) AS asked
    CROSS JOIN LATERAL (
        SELECT 1
        FROM deliveries d
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = asked.delivery_id
        FOR UPDATE
    ) AS d;

    -- A new statement: it must see what the previous holders of the locks wrote.
    WITH judged AS MATERIALIZED (
        SELECT d.row_place, d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.status, d.scheduled_for,
               CASE WHEN is_final(d.status) THEN 'already'
                    WHEN d.status = 'queued' AND d.attempt = 0 THEN 'rescheduled'
                    ELSE 'too_late' END AS verdict
        FROM unnest(_ids) AS asked (delivery_id)
        CROSS JOIN LATERAL (
            SELECT d.ctid AS row_place, d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.status,
                   d.scheduled_for
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = asked.delivery_id
            OFFSET 0
        ) AS d
    ), changed AS (
        UPDATE deliveries d
        SET scheduled_for = p_at,
            event_count = d.event_count + 1,
            updated_at = clock_timestamp()
        FROM judged j
        WHERE d.ctid = CASE WHEN j.verdict = 'rescheduled' THEN j.row_place END
    ), logged AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT p_workspace_id, j.delivery_id, j.message_id, j.channel_id, 'rescheduled', j.attempt,
               event_meta(j.trace_id, NULL, p_signature || jsonb_build_object('from', j.scheduled_for, 'to', p_at))
        FROM judged j
        WHERE j.verdict = 'rescheduled'
        ORDER BY j.delivery_id
    )
    SELECT jsonb_agg(jsonb_build_object(
               'delivery_id', j.delivery_id, 'channel_id', j.channel_id, 'title', c.title, 'platform', c.platform,
               'verdict', j.verdict, 'status', j.status) ORDER BY c.platform, c.title, j.channel_id, j.delivery_id)
    INTO _told
    FROM judged j
    LEFT JOIN channels c
      ON c.workspace_id = p_workspace_id
     AND c.channel_id = j.channel_id;
    RETURN jsonb_build_object('deliveries', coalesce(_told, '[]'), 'verdict', CASE
        WHEN _told @> '[{"verdict": "rescheduled"}]' THEN 'rescheduled'
        WHEN _told @> '[{"verdict": "too_late"}]' THEN 'too_late'
        ELSE 'already' END);
END $$;
