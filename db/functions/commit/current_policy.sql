-- current_policy() -> how often and how soon deliveries are retried, always one row
--
-- The only place that has the defaults.
--
-- max_attempts    transitions into sending, unless the post or its channel says otherwise
-- backoff_base    the first wait; it doubles with each attempt
-- backoff_cap     the longest wait that no platform asked for
-- group_cooldown  how long a rate group waits after a PERMANENT failure of the platform that named no wait
-- probe_base      the first wait before an open circuit is probed; it doubles with each probe
-- probe_cap       the longest such wait
CREATE OR REPLACE FUNCTION current_policy()
RETURNS TABLE (
    max_attempts int,
    backoff_base interval,
    backoff_cap interval,
    group_cooldown interval,
    probe_base interval,
    probe_cap interval
)
LANGUAGE sql
STABLE ROWS 1
AS $$
    SELECT coalesce(p.max_attempts, 5),
           coalesce(p.backoff_base, interval '2 seconds'),
           coalesce(p.backoff_cap, interval '10 minutes'),
           coalesce(p.group_cooldown, interval '1 minute'),
           coalesce(p.probe_base, interval '2 seconds'),
           coalesce(p.probe_cap, interval '1 minute')
    FROM (VALUES (true)) AS one (row)
    LEFT JOIN delivery_policy p ON p.is_the_only_one = one.row
$$;
