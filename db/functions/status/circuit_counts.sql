-- circuit_counts() -> by platform, how many rate groups have which circuit; each platform has a row for each
CREATE OR REPLACE FUNCTION circuit_counts()
RETURNS TABLE (platform text, circuit text, rate_groups bigint)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT g.platform, s.circuit::text, count(*) FILTER (WHERE g.circuit = s.circuit)
    FROM platform_limits g
    CROSS JOIN unnest(enum_range(NULL::circuit_state)) AS s (circuit)
    GROUP BY g.platform, s.circuit
$$;
