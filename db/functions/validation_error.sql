-- validation_error(problems) -> the error of a delivery that no plan could be made for
CREATE OR REPLACE FUNCTION validation_error(p_problems jsonb)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT jsonb_build_object('category', 'PERMANENT', 'scope', 'delivery', 'code', 'validation_failed',
                              'problems', p_problems)
$$;
