-- add_counters(stats, more) -> stats with the numbers of `more` added; other values of `more` replace those of stats
CREATE OR REPLACE FUNCTION add_counters(p_stats jsonb, p_more jsonb)
RETURNS jsonb
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT p_stats || coalesce(jsonb_object_agg(m.key, CASE jsonb_typeof(m.value)
        WHEN 'number' THEN to_jsonb(coalesce((p_stats ->> m.key)::bigint, 0) + m.value::bigint)
        ELSE m.value
    END), '{}')
    FROM jsonb_each(p_more) AS m
$$;
