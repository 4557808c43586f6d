-- probe_wait(number) -> how long to wait before this probe of an open circuit
--
-- probe_base (2 s) doubling with each probe, ± 20 %, never above probe_cap (60 s): so a platform that is back is noticed
-- within a minute.
CREATE OR REPLACE FUNCTION probe_wait(p_number int)
RETURNS interval
LANGUAGE sql
VOLATILE PARALLEL SAFE
AS $$
    SELECT least(p.probe_base * power(2, least(greatest(p_number, 1), 30) - 1), p.probe_cap / 1.2)
               * (0.8 + 0.4 * random())
    FROM current_policy() AS p
$$;
