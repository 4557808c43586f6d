-- is_legal_transition(from, to) -> whether a delivery may make this transition
--
-- The state machine, in this function only. failed_permanent and dead go back to retry only by an operator:
-- requeue_is_explained requires the event.
CREATE OR REPLACE FUNCTION is_legal_transition(p_from delivery_status, p_to delivery_status)
RETURNS boolean
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE p_from
        WHEN 'queued' THEN p_to IN ('claimed', 'sending', 'failed_permanent', 'deduped', 'dead', 'cancelled')
        WHEN 'retry' THEN p_to IN ('claimed', 'sending', 'failed_permanent', 'deduped', 'dead', 'cancelled')
        WHEN 'claimed' THEN p_to IN ('sending', 'queued', 'retry', 'dead')
        WHEN 'sending' THEN p_to IN ('sent', 'retry', 'failed_permanent', 'dead', 'cancelled')
        WHEN 'failed_permanent' THEN p_to = 'retry'
        WHEN 'dead' THEN p_to = 'retry'
        ELSE false
    END
$$;
