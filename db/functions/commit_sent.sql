-- commit_sent(workspace_id, delivery_ids, claim_tokens, provider_message_ids, parts, metas)
--     -> one verdict per outcome, as commit_deliveries gives it
--
-- What commit_deliveries does when everything arrived and no channel has a streak to be reset, which is nearly always:
-- no penalty, no retry, so nothing of the channels is read.
--
-- Changes      sending -> sent
-- Appends      sent, stale_commit
-- Locks        deliveries by key
CREATE OR REPLACE FUNCTION commit_sent(
    p_workspace_id uuid,
    p_delivery_ids uuid[],
    p_claim_tokens uuid[],
    p_provider_message_ids text[],
    p_parts jsonb[],
    p_metas jsonb[]
)
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
    _places tid[] := hold_claims(p_workspace_id, p_delivery_ids, p_claim_tokens);
BEGIN
    WITH moved AS (
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
        FROM unnest(_places, p_provider_message_ids, p_parts, p_metas)
             WITH ORDINALITY AS o (place, provider_message_id, parts, meta, nth)
        WHERE d.ctid = o.place
        RETURNING o.nth, d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id,
                  o.provider_message_id, o.parts, o.meta
    )
    INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
    SELECT id_in(_ids, _first_id + m.nth), p_workspace_id, m.delivery_id, m.message_id, m.channel_id, 'sent',
           m.attempt, sent_meta(m.trace_id, m.delivery_id, m.provider_message_id, m.parts, m.meta)
    FROM moved m;

    IF array_position(_places, NULL) IS NOT NULL THEN
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, result, error, meta)
        SELECT p_workspace_id, o.delivery_id, d.message_id, d.channel_id, 'stale_commit', coalesce(d.attempt, 0),
               'error', '{"code": "stale_commit", "message": "sent"}',
               jsonb_strip_nulls(jsonb_build_object('trace_id', d.trace_id, 'status', d.status,
                                                    'provider_message_id', o.provider_message_id))
        FROM unnest(_places, p_delivery_ids, p_provider_message_ids)
             WITH ORDINALITY AS o (place, delivery_id, provider_message_id, nth)
        LEFT JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.delivery_id = o.delivery_id
        WHERE o.place IS NULL
        ORDER BY o.nth;
    END IF;

    RETURN QUERY
    SELECT o.delivery_id,
           CASE WHEN o.place IS NULL THEN 'stale' ELSE 'committed' END,
           CASE WHEN o.place IS NOT NULL THEN 'sent'::delivery_status END,
           NULL::timestamptz
    FROM unnest(p_delivery_ids, _places) AS o (delivery_id, place);
END $$;
