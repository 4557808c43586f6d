-- id_in(drawn, number) -> the id with that number in a range; `drawn` is the first 24 characters of its first id
--
-- One random draw for all rows of a statement: a draw per row was a tenth of the cost of enqueueing. An id keeps the
-- time and the first random bits of the draw; its last 44 bits count up from a random number, id_start(). The caller
-- cuts off the 24 characters once: doing it for each row was a fiftieth of the cost.
CREATE OR REPLACE FUNCTION id_in(p_drawn text, p_number bigint)
RETURNS uuid
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (p_drawn || to_hex(p_number))::uuid
$$;
