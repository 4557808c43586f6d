-- retry_delay(attempt, retry_after_ms, code, policy, jitter) -> how long to wait before the next attempt
--
-- The retry policy, in this function only; its numbers are those of current_policy. `jitter` is a number in [0, 1);
-- tests fix it.
--
-- default        backoff_base (2 s) doubling with each attempt, at most backoff_cap (10 min), ± 20 %
-- publication    1 s doubling, ± 20 %
-- provider wait  retry_after_ms wins, without the cap, and jitter only adds (0 … + 20 %); a day at most
-- not ready      an attachment still being processed: 1 … 5 s for the first two attempts
CREATE OR REPLACE FUNCTION retry_delay(
    p_attempt int,
    p_retry_after_ms bigint DEFAULT NULL,
    p_code text DEFAULT NULL,
    p_policy text DEFAULT 'default',
    p_jitter double precision DEFAULT random()
)
RETURNS interval
LANGUAGE sql
VOLATILE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_retry_after_ms IS NOT NULL
            THEN make_interval(secs => least(p_retry_after_ms / 1000.0 * (1 + 0.2 * p_jitter), 86400))
        WHEN p_code = 'attachment.not.ready' AND p_attempt <= 2 THEN make_interval(secs => 1 + 4 * p_jitter)
        ELSE (
            SELECT least(
                       CASE p_policy WHEN 'publication' THEN interval '1 second' ELSE p.backoff_base END
                           * power(2, least(greatest(p_attempt, 1), 30) - 1),
                       p.backoff_cap
                   ) * (0.8 + 0.4 * p_jitter)
            FROM current_policy() AS p
        )
    END
$$;
