-- events_are_bounded() trigger on events: stores each error as bounded_error returns it, whatever wrote the event
CREATE OR REPLACE FUNCTION events_are_bounded()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.error := bounded_error(NEW.error);
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER events_are_bounded
    BEFORE INSERT ON events
    FOR EACH ROW
    WHEN (octet_length(NEW.error::text) > 500)
    EXECUTE FUNCTION events_are_bounded();
