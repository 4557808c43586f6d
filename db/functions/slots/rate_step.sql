-- rate_step(rate_rps) -> the time between two slots; 0 for null and 0, which mean "no limit"
CREATE OR REPLACE FUNCTION rate_step(p_rate_rps numeric)
RETURNS interval
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN p_rate_rps > 0 THEN make_interval(secs => (1 / p_rate_rps)::double precision) ELSE interval '0' END
$$;
