-- count_publications() -> how many publications have not ended, by status; a status without any has no row
--
-- Those that have ended are as many as ever were: they are counted when they end.
CREATE OR REPLACE FUNCTION count_publications()
RETURNS TABLE (status text, publications bigint)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT p.status, count(*)
    FROM publications p
    WHERE p.status NOT IN ('published', 'cancelled')
    GROUP BY p.status
$$;
