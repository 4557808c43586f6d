-- validation_error(problems) -> the error of a delivery for which no plan could be made
--
-- The first five problems; more_problems counts the others, which a dry run shows. The compiler has redacted them.
CREATE OR REPLACE FUNCTION validation_error(p_problems jsonb)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT bounded_error(jsonb_strip_nulls(jsonb_build_object(
        'category', 'PERMANENT', 'scope', 'delivery', 'code', 'validation_failed',
        'problems', jsonb_path_query_array(p_problems, '$[0 to 4]'),
        'more_problems', nullif(greatest(jsonb_array_length(p_problems) - 5, 0), 0))))
$$;
