-- is_near(a, b, slack) -> are two times the same, or at most this far apart? Two nulls are; two infinities are.
CREATE OR REPLACE FUNCTION is_near(p_a timestamptz, p_b timestamptz, p_slack interval)
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
