-- commit_sent(workspace_id, outcomes) -> one verdict per outcome, as commit_deliveries gives it
--
-- What commit_deliveries does when everything arrived and no channel has a streak to be reset, which is nearly always:
-- no penalty, no retry, so nothing of the channels is read.
--
-- Changes      sending -> sent
-- Appends      sent, stale_commit
-- Locks        deliveries by key
CREATE OR REPLACE FUNCTION commit_sent(p_workspace_id uuid, p_outcomes jsonb)
RETURNS TABLE (delivery_id uuid, verdict text, status delivery_status, next_retry_at timestamptz)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := clock_timestamp();
    _ids text := new_id();
    _first_id bigint := id_start(_ids);
    _places tid[] := hold_claims(p_workspace_id, p_outcomes);
BEGIN
    RETURN QUERY
    WITH outcomes AS MATERIALIZED (
        SELECT *
        FROM ROWS FROM (
            jsonb_to_recordset(p_outcomes) AS (delivery_id uuid, provider_message_id text, parts jsonb, meta jsonb)
        ) WITH ORDINALITY AS o (delivery_id, provider_message_id, parts, meta, nth)
    ), moved AS (
        UPDATE deliveries d
        SET status = 'sent',
            sent_at = _now,
            provider_message_id = coalesce(o.provider_message_id, d.provider_message_id),
            next_retry_at = NULL,
            hold_reason = NULL,
            claimed_at = NULL,
            claim_token = NULL,
            sending_started_at = NULL,
            sending_lease_until = NULL,
            event_count = d.event_count + 1,
            updated_at = _now
        FROM outcomes o
        WHERE d.ctid = _places[o.nth]
        RETURNING o.nth, d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id,
                  o.provider_message_id, o.parts, o.meta
    ), told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT id_in(_ids, _first_id + m.nth), p_workspace_id, m.delivery_id, m.message_id, m.channel_id, 'sent',
               m.attempt, sent_meta(m.trace_id, m.delivery_id, m.provider_message_id, m.parts, m.meta)
        FROM moved m
    ), verdicts AS MATERIALIZED (
        -- Grouped, not joined: a planner that takes each side for one row would compare each with each.
        SELECT v.nth, v.delivery_id, bool_or(v.committed) AS committed
        FROM (
            SELECT o.nth, o.delivery_id, false AS committed FROM outcomes o
            UNION ALL
            SELECT m.nth, m.delivery_id, true FROM moved m
        ) AS v
        GROUP BY v.nth, v.delivery_id
    ), told_of_stale AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, result, error, meta)
        SELECT p_workspace_id, v.delivery_id, d.message_id, d.channel_id, 'stale_commit', coalesce(d.attempt, 0),
               'error', '{"code": "stale_commit", "message": "sent"}',
               jsonb_strip_nulls(jsonb_build_object('trace_id', d.trace_id, 'status', d.status,
                                                    'provider_message_id', o.provider_message_id))
        FROM verdicts v
        JOIN outcomes o ON o.nth = v.nth
        LEFT JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.delivery_id = v.delivery_id
        WHERE NOT v.committed
    )
    SELECT v.delivery_id,
           CASE WHEN v.committed THEN 'committed' ELSE 'stale' END,
           CASE WHEN v.committed THEN 'sent'::delivery_status END,
           NULL::timestamptz
    FROM verdicts v
    ORDER BY v.nth;
END $$;
