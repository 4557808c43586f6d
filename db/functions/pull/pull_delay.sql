-- pull_delay(every, failures, wait, jitter) -> how long a source waits after its pull failed
--
-- Its interval, doubling with each failure in a row, up to six hours or its interval if that is longer, ± 20 %. The
-- wait that the source asked for is the minimum, up to a day. `jitter` is a number in [0, 1); tests fix it.
CREATE OR REPLACE FUNCTION pull_delay(
    p_every interval,
    p_failures int,
    p_wait interval DEFAULT NULL,
    p_jitter double precision DEFAULT random()
)
RETURNS interval
LANGUAGE sql
VOLATILE PARALLEL SAFE
AS $$
    SELECT greatest(
        least(
            greatest(p_every, interval '10 seconds') * power(2, least(greatest(p_failures, 1), 20) - 1),
            greatest(p_every, interval '6 hours')
        ) * (0.8 + 0.4 * p_jitter),
        CASE WHEN p_wait IS NOT NULL THEN least(p_wait, interval '1 day') * (1 + 0.2 * p_jitter) END
    )
$$;
