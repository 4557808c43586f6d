-- id_in(drawn, number) -> the id with that number in the range that a drawn id begins
--
-- One draw of randomness for all rows of a statement: a draw for each was a tenth of the cost of enqueueing. An id keeps
-- the time and the first random bits of the draw; its last 44 bits count up from a random number, id_start(drawn).
CREATE OR REPLACE FUNCTION id_in(p_drawn text, p_number bigint)
RETURNS uuid
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (left(p_drawn, 24) || to_hex(p_number))::uuid
$$;
