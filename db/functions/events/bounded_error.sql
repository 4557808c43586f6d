-- bounded_error(error) -> the error as it is stored: under 2 KB, and no text in it of more than 500 characters
--
-- An error is copied into an event and a row for each channel, so its size is multiplied by their number. An error that
-- is too long is shortened step by step; if no step is enough, only its names and codes stay.
CREATE OR REPLACE FUNCTION bounded_error(p_error jsonb)
RETURNS jsonb
LANGUAGE plpgsql
IMMUTABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _bounded jsonb;
    _longest int;
BEGIN
    IF p_error IS NULL OR octet_length(p_error::text) <= 500 THEN
        RETURN p_error;
    END IF;
    FOREACH _longest IN ARRAY '{500,240,80}'::int[]
    LOOP
        _bounded := shortened(p_error, _longest, 20);
        IF octet_length(_bounded::text) <= 2000 THEN
            RETURN _bounded;
        END IF;
    END LOOP;
    SELECT coalesce(jsonb_object_agg(e.key, shortened(e.value, 40, 1, 1)), '{}') || '{"shortened": true}'
    INTO _bounded
    FROM jsonb_each(p_error) AS e (key, value)
    WHERE e.key IN ('category', 'scope', 'code', 'field', 'ambiguous', 'retry_after_ms');
    RETURN _bounded;
END $$;
