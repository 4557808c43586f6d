-- publication_step(step) -> how long a channel stays closed after a call of a publication
--
-- A channel shows at most one publication in three seconds, whatever its own rate; `step` is that of its own rate. The
-- tenth above is for calls that begin a little late.
CREATE OR REPLACE FUNCTION publication_step(p_step interval)
RETURNS interval
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT greatest(p_step, interval '3.1 seconds')
$$;
