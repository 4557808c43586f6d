-- catch_up_begins() trigger on channels, before a catch-up policy replaces `all`
--
-- A pause that expired under `all` ended then: the new policy must not apply to what has come since.
CREATE OR REPLACE FUNCTION catch_up_begins()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF NEW.paused_until <= clock_timestamp() THEN
        NEW.paused_until := NULL;
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER catch_up_begins
    BEFORE UPDATE OF catch_up ON channels
    FOR EACH ROW
    WHEN (OLD.catch_up ->> 'policy' = 'all' AND NEW.catch_up ->> 'policy' <> 'all')
    EXECUTE FUNCTION catch_up_begins();
