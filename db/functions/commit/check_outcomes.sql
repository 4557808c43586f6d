-- check_outcomes(outcomes)
--
-- Refuses a batch with an unknown outcome.
--
-- Raises    AP001
CREATE OR REPLACE FUNCTION check_outcomes(p_outcomes jsonb)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = public, pg_temp
AS $$
DECLARE
    _unknown text;
BEGIN
    SELECT min(coalesce(o.result, 'null'))
    INTO _unknown
    FROM jsonb_to_recordset(p_outcomes) AS o (result text, category text, scope text)
    WHERE coalesce(o.result, '') NOT IN ('sent', 'failed', 'released')
       OR (o.result = 'failed' AND (coalesce(o.category, '') NOT IN ('TRANSIENT', 'PERMANENT')
                                    OR coalesce(o.scope, '') NOT IN ('delivery', 'channel', 'platform')));
    IF _unknown IS NOT NULL THEN
        RAISE EXCEPTION 'unknown outcome %', _unknown
            USING ERRCODE = 'AP001', HINT = 'result is sent, failed or released; a failure has a category and a scope';
    END IF;
END $$;
