-- retry_decision(ambiguous, on_ambiguous, attempt, max_attempts) -> 'hold' | 'dead' | 'retry'
--
-- What follows a TRANSIENT failure. No other function decides this.
--
-- hold      the platform may have the post, and the channel (on_ambiguous = 'hold') wants an operator to decide
-- dead      the attempts are used up
-- retry     another attempt follows
CREATE OR REPLACE FUNCTION retry_decision(p_ambiguous boolean, p_on_ambiguous text, p_attempt int, p_max_attempts int)
RETURNS text
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_ambiguous AND p_on_ambiguous = 'hold' THEN 'hold'
        WHEN p_attempt >= p_max_attempts THEN 'dead'
        ELSE 'retry'
    END
$$;
