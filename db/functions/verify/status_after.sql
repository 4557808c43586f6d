-- status_after(action) -> the status of a delivery after this event; null when the event does not change it
--
-- A checkpoint has the status in its meta. send_attempt is the claim: from there on the delivery is being sent.
CREATE OR REPLACE FUNCTION status_after(p_action event_action)
RETURNS delivery_status
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE p_action
        WHEN 'enqueue' THEN 'queued'::delivery_status
        WHEN 'validation_failed' THEN 'failed_permanent'::delivery_status
        WHEN 'dedup_suppressed' THEN 'deduped'::delivery_status
        WHEN 'send_attempt' THEN 'sending'::delivery_status
        WHEN 'sent' THEN 'sent'::delivery_status
        WHEN 'retry_scheduled' THEN 'retry'::delivery_status
        WHEN 'held' THEN 'retry'::delivery_status
        WHEN 'sending_lease_expired' THEN 'retry'::delivery_status
        WHEN 'claimed_lease_expired' THEN 'queued'::delivery_status
        WHEN 'manual_requeue' THEN 'retry'::delivery_status
        WHEN 'failed_permanent' THEN 'failed_permanent'::delivery_status
        WHEN 'catch_up_dropped' THEN 'failed_permanent'::delivery_status
        WHEN 'dead_letter' THEN 'dead'::delivery_status
        WHEN 'manual_skip' THEN 'dead'::delivery_status
        WHEN 'cancelled' THEN 'cancelled'::delivery_status
    END
$$;
