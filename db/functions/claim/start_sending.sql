-- start_sending(places, slots, claim_token, run_id, lease, now, facts) -> the deliveries, now `sending`, in order
--
-- facts     what else the events say; null for nothing
-- Changes   queued | retry -> sending, attempt + 1
-- Appends   send_attempt
-- Locks     deliveries by place: held by the caller
CREATE OR REPLACE FUNCTION start_sending(
    p_places tid[],
    p_slots timestamptz[],
    p_claim_token uuid,
    p_run_id uuid,
    p_lease interval,
    p_now timestamptz,
    p_facts jsonb DEFAULT NULL
)
RETURNS TABLE (
    workspace_id uuid,
    delivery_id uuid,
    message_id uuid,
    channel_id uuid,
    rendering_id uuid,
    attempt int,
    sending_lease_until timestamptz,
    slot_at timestamptz,
    render_meta jsonb,
    verify boolean,
    trace_id text,
    traceparent text,
    created_at timestamptz,
    turn bigint
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _drawn text := new_id();
    _first_id bigint := id_start(_drawn);
    _ids text := left(_drawn, 24);
    _run text := p_run_id::text;
BEGIN
    RETURN QUERY
    WITH took AS (
        UPDATE deliveries d
        SET status = 'sending',
            attempt = d.attempt + 1,
            claimed_at = p_now,
            claim_token = p_claim_token,
            sending_started_at = p_now,
            sending_lease_until = p_now + p_lease,
            slot_at = h.slot_at,
            hold_reason = NULL,
            event_count = d.event_count + 1,
            updated_at = p_now
        FROM unnest(p_places, p_slots) WITH ORDINALITY AS h (place, slot_at, turn)
        WHERE d.ctid = h.place
        RETURNING d.workspace_id, d.delivery_id, d.message_id, d.channel_id, d.rendering_id, d.attempt, d.slot_at,
                  d.render_meta, d.last_error, d.trace_id, d.traceparent, d.created_at, h.turn
    ), told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT id_in(_ids, _first_id + t.turn), t.workspace_id, t.delivery_id, t.message_id, t.channel_id,
               'send_attempt', t.attempt,
               jsonb_object(ARRAY['trace_id', t.trace_id, 'run_id', _run, 'idempotency_key', t.delivery_id::text,
                                  'slot_at', btrim(to_json(t.slot_at)::text, '"')]) || coalesce(p_facts, '{}')
        FROM took t
    )
    SELECT t.workspace_id, t.delivery_id, t.message_id, t.channel_id, t.rendering_id, t.attempt, p_now + p_lease,
           t.slot_at, t.render_meta,
           CASE WHEN t.last_error @> '{"ambiguous": true}' THEN (
               SELECT c.on_ambiguous = 'verify'
               FROM channels c
               WHERE c.workspace_id = t.workspace_id
                 AND c.channel_id = t.channel_id
           ) ELSE false END,
           t.trace_id, t.traceparent, t.created_at, t.turn
    FROM took t
    ORDER BY t.turn;
END $$;
