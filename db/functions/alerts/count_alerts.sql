-- count_alerts() -> how many alerts are open, by condition, for a metric
CREATE OR REPLACE FUNCTION count_alerts()
RETURNS TABLE (condition text, alerts bigint)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT a.condition, count(*)
    FROM alerts a
    WHERE a.recovered_at IS NULL
    GROUP BY a.condition
$$;
