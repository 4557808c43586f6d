-- same_time(a, b, slack) -> whether two times are at most this far apart; two nulls count as equal, and two infinities
CREATE OR REPLACE FUNCTION same_time(p_a timestamptz, p_b timestamptz, p_slack interval)
RETURNS boolean
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_a IS NULL OR p_b IS NULL THEN p_a IS NULL AND p_b IS NULL
        WHEN isfinite(p_a) AND isfinite(p_b) THEN greatest(p_a, p_b) - least(p_a, p_b) <= p_slack
        ELSE p_a = p_b
    END
$$;
