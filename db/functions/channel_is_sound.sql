-- channel_is_sound() trigger on channels, before a write of its zone, windows or filter
--
-- Refuses what claim and enqueue could not read later: there it would fail for every channel of the workspace.
-- Raises AP009.
CREATE OR REPLACE FUNCTION channel_is_sound()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _problem text;
BEGIN
    BEGIN
        PERFORM now() AT TIME ZONE NEW.timezone;

        SELECT format('posting_window: %s', day.key)
        INTO _problem
        FROM jsonb_each(NEW.posting_window) AS day
        CROSS JOIN LATERAL jsonb_array_elements(day.value) AS span
        WHERE CASE
                  WHEN day.key = 'holidays' THEN (span #>> '{}')::date IS NULL
                  WHEN day.key IN ('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun')
                      THEN jsonb_array_length(span) <> 2 OR (span ->> 0)::time IS NULL OR (span ->> 1)::time IS NULL
                  ELSE true
              END
        LIMIT 1;

        SELECT coalesce(_problem, format('route_filter: %s', list.key))
        INTO _problem
        FROM jsonb_each(NEW.route_filter) AS list
        WHERE list.key NOT IN ('include_any', 'include_all', 'exclude')
           OR jsonb_array_length(list.value) IS NULL
           OR lower(list.value::text) <> list.value::text
        UNION ALL
        SELECT _problem
        LIMIT 1;
    EXCEPTION WHEN data_exception THEN
        _problem := SQLERRM;
    END;

    IF _problem IS NOT NULL THEN
        RAISE EXCEPTION 'channel %: %', NEW.channel_id, _problem
            USING ERRCODE = 'AP009', HINT = 'an IANA zone; {"mon": [["09:00", "21:00"]], "holidays": ["2026-01-01"]}; '
                '{"include_any": ["lowercase"], "include_all": [], "exclude": []}';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER channel_is_sound
    BEFORE INSERT OR UPDATE OF timezone, posting_window, route_filter ON channels
    FOR EACH ROW EXECUTE FUNCTION channel_is_sound();
