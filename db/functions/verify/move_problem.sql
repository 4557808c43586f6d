-- move_problem(action, result, error, ts, meta, attempt, max_attempts, sleeps_until, claimed_by, action_after)
-- -> what is wrong with an event of a delivery that may follow the one before; null when nothing is
--
-- max_attempts   how many attempts the delivery has at this event; null when the log does not say
-- sleeps_until   until when the event before it postponed the delivery; null when it did not
-- claimed_by     the run_id of the send_attempt right before it; null when there is none, or it has no run
-- action_after   the next event of the delivery
--
-- Attempts     after its last failed attempt a delivery is dead or held, never retried. Released or requeued deliveries
--              may exceed that.
-- Early        a delivery is not claimed before the time it was postponed to, and not postponed for less than the
--              platform asked for. The time of a claim is its slot or its event, whichever is later; one second is
--              allowed for a clock that is set, and five between a commit's own time and that of its event. The longest
--              wait is a day.
-- Two owners   the run that claimed an attempt records its end.
-- Lease        it is recorded as expired only after it ended.
CREATE OR REPLACE FUNCTION move_problem(
    p_action event_action,
    p_result event_result,
    p_error jsonb,
    p_ts timestamptz,
    p_meta jsonb,
    p_attempt int,
    p_max_attempts int,
    p_sleeps_until timestamptz,
    p_claimed_by text,
    p_action_after event_action
)
RETURNS text
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_action = 'send_attempt'
             AND greatest(p_ts, (p_meta ->> 'slot_at')::timestamptz) < p_sleeps_until - interval '1 second'
            THEN format('send_attempt before %s', p_sleeps_until)
        WHEN p_action IN ('sent', 'retry_scheduled', 'held', 'failed_permanent', 'dead_letter')
             AND p_meta ->> 'run_id' <> p_claimed_by
            THEN format('%s by another run than that of the claim', p_action)
        WHEN p_action = 'sending_lease_expired'
             AND (p_meta ->> 'lease_until')::timestamptz
                 > greatest(p_ts, (p_meta ->> 'as_of')::timestamptz) + interval '1 second'
            THEN format('sending_lease_expired before %s', p_meta ->> 'lease_until')
        WHEN p_action = 'sending_lease_expired'
             AND p_attempt >= p_max_attempts
             AND (p_action_after IS NULL OR p_action_after NOT IN ('dead_letter', 'held'))
            THEN format('a retry after attempt %s of %s', p_attempt, p_max_attempts)
        WHEN p_action = 'retry_scheduled' AND p_result = 'error' AND p_attempt >= p_max_attempts
            THEN format('a retry after attempt %s of %s', p_attempt, p_max_attempts)
        WHEN p_action = 'retry_scheduled'
             AND p_error ? 'retry_after_ms'
             AND (p_meta ->> 'next_retry_at')::timestamptz
                 < p_ts - interval '5 seconds'
                   + least(make_interval(secs => (p_error ->> 'retry_after_ms')::double precision / 1000),
                           interval '1 day')
            THEN format('retry_scheduled for %s, %s ms were asked for', p_meta ->> 'next_retry_at',
                        p_error ->> 'retry_after_ms')
    END
$$;
