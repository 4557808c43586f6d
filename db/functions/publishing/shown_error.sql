-- shown_error(error) -> {"category", "scope", "code", "message"} of a delivery's error, as people outside may read it
--
-- Without the answer of the platform, which may repeat the post.
CREATE OR REPLACE FUNCTION shown_error(p_error jsonb)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN p_error IS NOT NULL THEN jsonb_strip_nulls(jsonb_build_object(
        'category', p_error ->> 'category', 'scope', p_error ->> 'scope', 'code', p_error ->> 'code',
        'message', quoted(p_error ->> 'message', 500))) END
$$;
