-- check_channel() trigger on channels, before a write of time zone, windows, filter, settings or tags
--
-- Refuses values that claim and enqueue cannot read: there they would fail for all channels of the workspace. Tags are
-- stored in their canonical form (canonical_tags).
--
-- Raises    AP009
CREATE OR REPLACE FUNCTION check_channel()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _problem text;
BEGIN
    NEW.tags := canonical_tags(NEW.tags);
    BEGIN
        PERFORM now() AT TIME ZONE NEW.timezone;

        -- Every claim and every new profile carries them, and services read JSON up to a limited depth.
        IF jsonb_path_exists(NEW.settings, '$.**{17}') THEN
            _problem := 'settings: nested deeper than 16 levels';
        ELSIF octet_length(NEW.settings::text) > 65536 THEN
            _problem := 'settings: larger than 65536 bytes';
        END IF;

        -- A claim evaluates each entry for each day of a year.
        SELECT coalesce(_problem, format('posting_window: %s has more than 400 entries', day.key))
        INTO _problem
        FROM jsonb_each(NEW.posting_window) AS day
        WHERE jsonb_array_length(day.value) > 400
        UNION ALL
        SELECT _problem
        LIMIT 1;

        SELECT coalesce(_problem, format('posting_window: %s', day.key))
        INTO _problem
        FROM jsonb_each(NEW.posting_window) AS day
        CROSS JOIN LATERAL jsonb_array_elements(day.value) AS span
        WHERE CASE
                  WHEN day.key = 'holidays' THEN (span #>> '{}')::date IS NULL
                  WHEN day.key IN ('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun')
                      THEN jsonb_array_length(span) <> 2 OR (span ->> 0)::time IS NULL OR (span ->> 1)::time IS NULL
                  ELSE true
              END
        UNION ALL
        SELECT _problem
        LIMIT 1;

        SELECT coalesce(_problem, format('route_filter: %s', list.key))
        INTO _problem
        FROM jsonb_each(NEW.route_filter) AS list
        WHERE list.key NOT IN ('include_any', 'include_all', 'exclude')
           OR jsonb_array_length(list.value) IS NULL
           OR lowercase(list.value::text) <> list.value::text
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

CREATE OR REPLACE TRIGGER check_channel
    BEFORE INSERT OR UPDATE OF timezone, posting_window, route_filter, settings, tags ON channels
    FOR EACH ROW EXECUTE FUNCTION check_channel();
