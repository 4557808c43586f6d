-- id_start(drawn) -> the number at which the range of a drawn id begins; see id_in
CREATE OR REPLACE FUNCTION id_start(p_drawn text)
RETURNS bigint
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT ('x' || right(p_drawn, 11))::bit(44)::bigint
$$;
