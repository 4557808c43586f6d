-- id_start(drawn) -> the first number in the range of a drawn id; see id_in
--
-- 44 random bits above the first number of twelve hexadecimal digits: counting up never adds a digit.
CREATE OR REPLACE FUNCTION id_start(p_drawn text)
RETURNS bigint
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT x'800000000000'::bigint + ('x' || right(p_drawn, 11))::bit(44)::bigint
$$;
