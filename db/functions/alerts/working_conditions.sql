-- working_conditions(thresholds)
-- -> sound: the thresholds whose conditions can be evaluated; broken: {condition: SQLSTATE}
--
-- Called when evaluate_alerts fails, so that one condition that raises does not silence the others.
CREATE OR REPLACE FUNCTION working_conditions(p_thresholds jsonb, OUT sound jsonb, OUT broken jsonb)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _condition text;
    _threshold jsonb;
BEGIN
    sound := '{}';
    broken := '{}';
    FOR _condition, _threshold IN SELECT t.key, t.value FROM jsonb_each(p_thresholds) AS t
    LOOP
        BEGIN
            PERFORM to_jsonb(c) FROM alert_conditions(jsonb_build_object(_condition, _threshold)) AS c;
            sound := sound || jsonb_build_object(_condition, _threshold);
        EXCEPTION WHEN OTHERS THEN
            broken := broken || jsonb_build_object(_condition, SQLSTATE);
        END;
    END LOOP;
END $$;
