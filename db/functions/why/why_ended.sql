-- why_ended(workspace_id, delivery_ids, now) -> for each ended delivery of these, how it ended and why
--
-- outcome      sent               detail: {"platform", "target_id", "provider_message_id", "parts": [{"part", "ids"}]}
--              preflight          no legal plan was possible: {"problems", "more_problems": how many are not kept}
--              catch_up_dropped   dropped when its channel was opened again: {"operator", "reason", "catch_up"}
--              refused            the platform refused it permanently: {"code", "message", "scope"}
--              dead               all attempts failed: {"code", "message"}
--              skipped            dead, and an operator left it so: also {"operator", "reason", "skipped_at"}
--              deduped            the channel had the same content: {"twin": {"delivery_id", "status", "sent_at", …}}
-- at           when it ended
-- command      how to requeue it, where that is allowed; else detail.requeue says why not: see check_requeue
CREATE OR REPLACE FUNCTION why_ended(p_workspace_id uuid, p_delivery_ids uuid[], p_now timestamptz DEFAULT NULL)
RETURNS TABLE (
    delivery_id uuid,
    channel_id uuid,
    status delivery_status,
    outcome text,
    at timestamptz,
    command text,
    detail jsonb
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH ended AS MATERIALIZED (
        SELECT d.*, g.given_up_at, g.skipped_at,
               CASE
                   WHEN d.status = 'dead' AND g.skipped_at IS NOT NULL THEN 'skipped'
                   WHEN d.status <> 'failed_permanent' THEN d.status::text
                   WHEN d.last_error ->> 'code' = 'validation_failed' THEN 'preflight'
                   WHEN d.last_error ->> 'code' = 'catch_up_dropped' THEN 'catch_up_dropped'
                   ELSE 'refused'
               END AS outcome
        FROM deliveries d
        LEFT JOIN dead_letters g USING (workspace_id, delivery_id)
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = ANY (p_delivery_ids)
          AND is_final(d.status)
          AND sees_workspace(p_workspace_id)
    ), again AS MATERIALIZED (
        SELECT j.*
        FROM check_requeue(p_workspace_id,
                           ARRAY(SELECT e.delivery_id FROM ended e WHERE e.status IN ('failed_permanent', 'dead')),
                           false, coalesce(p_now, clock_timestamp())) AS j
    )
    SELECT e.delivery_id, e.channel_id, e.status, e.outcome,
           coalesce(e.sent_at, e.given_up_at, e.updated_at),
           CASE WHEN a.verdict = 'requeued'
                THEN format('autopost queue requeue %s --workspace %s --reason ''…''', e.delivery_id,
                            p_workspace_id) END,
           jsonb_strip_nulls(CASE e.outcome
               WHEN 'sent' THEN jsonb_build_object(
                   'platform', c.platform, 'target_id', c.target_id, 'provider_message_id', e.provider_message_id,
                   'parts', parts.list)
               WHEN 'deduped' THEN jsonb_build_object('twin', twin.shown)
               WHEN 'preflight' THEN jsonb_build_object(
                   'problems', e.last_error -> 'problems', 'more_problems', e.last_error -> 'more_problems')
               WHEN 'catch_up_dropped' THEN jsonb_build_object('catch_up', told.meta -> 'catch_up')
               ELSE jsonb_build_object('code', e.last_error ->> 'code', 'message', e.last_error ->> 'message',
                                       'scope', e.last_error ->> 'scope', 'skipped_at', e.skipped_at)
           END || jsonb_build_object('operator', told.meta ->> 'operator', 'reason', told.meta ->> 'reason',
                                     'requeue', nullif(a.verdict, 'requeued'), 'twin_id', a.twin_id))
    FROM ended e
    JOIN channels c
      ON c.workspace_id = e.workspace_id
     AND c.channel_id = e.channel_id
    LEFT JOIN again a USING (delivery_id)
    LEFT JOIN LATERAL (
        SELECT t.meta
        FROM events t
        WHERE t.workspace_id = e.workspace_id
          AND t.delivery_id = e.delivery_id
          AND t.action = CASE e.outcome
                  WHEN 'sent' THEN 'sent'
                  WHEN 'skipped' THEN 'manual_skip'
                  WHEN 'catch_up_dropped' THEN 'catch_up_dropped'
              END::event_action
        ORDER BY t.seq DESC
        LIMIT 1
    ) AS told ON true
    LEFT JOIN LATERAL (
        -- A plan of several calls has each recorded; one of a single call has its ids in the event, or one id.
        SELECT jsonb_agg(jsonb_build_object('part', p.part, 'ids', p.ids) ORDER BY p.part) AS list
        FROM (
            SELECT s.part::int AS part,
                   e.render_meta #> ARRAY['series_progress', 'provider_message_ids', (s.nth - 1)::text] AS ids
            FROM jsonb_array_elements_text(e.render_meta #> '{series_progress,sent_items}')
                     WITH ORDINALITY AS s (part, nth)
            UNION ALL
            SELECT (s.nth - 1)::int, s.ids
            FROM jsonb_array_elements(coalesce(told.meta -> 'parts',
                                               jsonb_build_array(jsonb_build_array(e.provider_message_id))))
                     WITH ORDINALITY AS s (ids, nth)
            WHERE NOT e.render_meta ? 'series_progress'
        ) AS p
        WHERE e.status = 'sent'
    ) AS parts ON true
    LEFT JOIN LATERAL (
        SELECT jsonb_strip_nulls(jsonb_build_object(
                   'delivery_id', t.delivery_id, 'status', t.status, 'sent_at', t.sent_at,
                   'provider_message_id', t.provider_message_id)) AS shown
        FROM deliveries t
        WHERE e.status = 'deduped'
          AND t.workspace_id = e.workspace_id
          AND t.message_id = e.message_id
          AND t.channel_id = e.channel_id
          AND t.status <> 'deduped'
          AND t.created_at <= e.created_at
        ORDER BY t.created_at DESC
        LIMIT 1
    ) AS twin ON true
$$;
