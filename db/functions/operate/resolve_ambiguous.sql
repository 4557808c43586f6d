-- resolve_ambiguous(workspace_id, delivery_id, decision, operator, reason, provider_message_id) -> {"verdict", …}
--
-- Ends a hold: an operator has looked into the channel and knows whether the unanswered call arrived.
--
-- decision     sent      it did. Of a plan of several calls this is the first one without an acknowledgement: it is
--                        recorded as a part, and remaining calls go out at once; if none remain, the delivery is sent.
--              resend    it did not: that call is repeated at once
-- provider_message_id   what the operator found there, if known; a part without one is recorded as 'unknown'
-- Verdicts     sent, continues (parts are left), resent, not_held ("status" says what it is), not_found
-- Changes      retry -> sending -> sent, or retry -> retry. There is no transition from retry to sent, on purpose: so
--              it passes through sending inside this transaction, under a token that no worker ever sees. No call is
--              made, so `attempt` stays: the attempt recorded as sent is the one whose response was missing, and
--              fold(events) agrees. Where calls are to follow and no attempt is left, one more is allowed.
-- Appends      sent (attempt as it is, manual: true, provider_message_id as the delivery has it; `found` when the
--              operator's is another), or manual_requeue
-- Locks        for `sent`, the claim lock of the workspace; deliveries and its triggers' tables. The channel's streak
--              does not change: this says nothing about its state today.
-- Raises       AP010 without operator or reason, AP011 for an unknown decision.
CREATE OR REPLACE FUNCTION resolve_ambiguous(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_decision text,
    p_operator text,
    p_reason text,
    p_provider_message_id text DEFAULT NULL
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason) || jsonb_build_object('manual', true, 'resolved', p_decision);
    _held record;
    _part int;
    _calls int;
    _verdict text;
    _row_place tid;
    _sent_as text := p_provider_message_id;
    _now timestamptz;
BEGIN
    IF p_decision IS NULL OR p_decision NOT IN ('sent', 'resend') THEN
        RAISE EXCEPTION 'decision must be sent or resend, not %', coalesce(p_decision, 'null')
            USING ERRCODE = 'AP011';
    END IF;

    IF p_decision = 'sent' THEN
        -- It counts a start and an end of a send; a claim locks the two counters in the other order.
        PERFORM pg_advisory_xact_lock(claim_lock(p_workspace_id));
    END IF;
    SELECT *
    INTO _held
    FROM deliveries d
    WHERE d.workspace_id = p_workspace_id
      AND d.delivery_id = p_delivery_id
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('verdict', 'not_found');
    ELSIF _held.status <> 'retry' OR _held.hold_reason IS NULL
          OR coalesce(_held.next_retry_at, '-infinity') < 'infinity' THEN
        RETURN jsonb_build_object('verdict', 'not_held', 'status', _held.status);
    END IF;
    _now := clock_timestamp();

    _part := coalesce(jsonb_array_length(_held.render_meta #> '{series_progress,sent_items}'), 0);
    SELECT r.calls
    INTO _calls
    FROM renderings r
    WHERE r.workspace_id = p_workspace_id
      AND r.rendering_id = _held.rendering_id;
    _verdict := CASE
        WHEN p_decision = 'resend' THEN 'resent'
        WHEN _part + 1 < coalesce(_calls, 1) THEN 'continues'
        ELSE 'sent'
    END;

    IF _verdict = 'sent' THEN
        UPDATE deliveries d
        SET status = 'sending',
            hold_reason = NULL,
            claimed_at = _now,
            claim_token = gen_random_uuid(),
            sending_started_at = _now,
            sending_lease_until = _now
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = p_delivery_id
        RETURNING d.ctid INTO _row_place;
        _sent_as := coalesce(_held.provider_message_id,
                             _held.render_meta #>> '{series_progress,provider_message_ids,0,0}',
                             p_provider_message_id);
        PERFORM move_deliveries(ARRAY[
            (_row_place, 'sent', NULL, NULL, NULL, _sent_as, NULL, 1)::delivery_move], _now);
    ELSE
        UPDATE deliveries d
        SET hold_reason = NULL,
            cancel_request = NULL,
            next_retry_at = _now,
            max_attempts = greatest(d.max_attempts, d.attempt + 1),
            last_error = d.last_error - 'ambiguous', -- decided: no check before the next call
            render_meta = CASE WHEN _verdict = 'resent' THEN d.render_meta ELSE
                jsonb_set(d.render_meta, '{series_progress}', jsonb_build_object(
                    'sent_items',
                    coalesce(d.render_meta #> '{series_progress,sent_items}', '[]') || to_jsonb(_part),
                    'provider_message_ids',
                    coalesce(d.render_meta #> '{series_progress,provider_message_ids}', '[]')
                        || jsonb_build_array(jsonb_build_array(coalesce(p_provider_message_id, 'unknown')))))
            END,
            event_count = d.event_count + 1,
            updated_at = _now
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = p_delivery_id;
    END IF;

    INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
    VALUES (p_workspace_id, p_delivery_id, _held.message_id, _held.channel_id,
            CASE WHEN _verdict = 'sent' THEN 'sent' ELSE 'manual_requeue' END::event_action,
            _held.attempt,
            event_meta(_held.trace_id, NULL, _signature || jsonb_build_object(
                'from_status', _held.status, 'hold_reason', _held.hold_reason,
                'part', _part, 'provider_message_id', _sent_as,
                'max_attempts', CASE WHEN _verdict <> 'sent' THEN greatest(_held.max_attempts, _held.attempt + 1) END,
                'found', CASE WHEN _sent_as IS DISTINCT FROM p_provider_message_id THEN p_provider_message_id END)));
    RETURN jsonb_build_object('verdict', _verdict, 'attempt', _held.attempt);
END $$;
