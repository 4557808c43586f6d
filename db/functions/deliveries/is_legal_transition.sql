-- is_legal_transition(from, to) -> may a delivery move so?
--
-- The state machine, and the only place that knows it. failed_permanent and dead go back to retry by an
-- operator's hand alone: requeue_is_explained demands the event.
CREATE OR REPLACE FUNCTION is_legal_transition(p_from delivery_status, p_to delivery_status)
RETURNS boolean
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE p_from
        WHEN 'queued' THEN p_to IN ('claimed', 'sending', 'failed_permanent', 'deduped', 'dead')
        WHEN 'retry' THEN p_to IN ('claimed', 'sending', 'failed_permanent', 'deduped', 'dead')
        WHEN 'claimed' THEN p_to IN ('sending', 'queued', 'retry', 'dead')
        WHEN 'sending' THEN p_to IN ('sent', 'retry', 'failed_permanent', 'dead')
        WHEN 'failed_permanent' THEN p_to = 'retry'
        WHEN 'dead' THEN p_to = 'retry'
        ELSE false
    END
$$;
