-- may_follow(before, action, resolved) -> whether this event of a delivery may come after the events before it
--
-- The state machine of is_legal_transition as the log sees it: a claim by hand leaves no event, and a recovery first
-- records the end of the lease and then its consequence.
--
-- before       the status by the earlier events; null: there are none
-- resolved     the event ends a hold (resolve_ambiguous): then `sent` may come after a retry
CREATE OR REPLACE FUNCTION may_follow(p_before delivery_status, p_action event_action, p_resolved boolean)
RETURNS boolean
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT coalesce(CASE
        WHEN p_action IN ('enqueue', 'validation_failed', 'dedup_suppressed', 'checkpoint') THEN p_before IS NULL
        WHEN p_action IN ('send_attempt', 'claimed_lease_expired', 'catch_up_dropped')
            THEN p_before IN ('queued', 'retry')
        WHEN p_action = 'sent' THEN p_before = 'sending' OR (p_resolved AND p_before = 'retry')
        WHEN p_action IN ('retry_scheduled', 'failed_permanent', 'sending_lease_expired') THEN p_before = 'sending'
        WHEN p_action = 'held' THEN p_before IN ('sending', 'retry')
        WHEN p_action IN ('dead_letter', 'cancelled') THEN p_before IN ('queued', 'retry', 'sending')
        WHEN p_action = 'manual_requeue' THEN p_before NOT IN ('sent', 'deduped', 'cancelled')
        WHEN p_action = 'manual_skip' THEN p_before = 'dead'
    END, false)
$$;
