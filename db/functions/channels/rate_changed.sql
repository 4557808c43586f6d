-- rate_changed() trigger on channels and platform_limits: keeps rate_since when the rate changes
--
-- verify_sends reads it, because it checks slots only against their own rate.
CREATE OR REPLACE FUNCTION rate_changed()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.rate_since := clock_timestamp();
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER rate_changed
    BEFORE UPDATE OF rate_rps, platform, rate_group ON channels
    FOR EACH ROW
    WHEN ((NEW.rate_rps, NEW.platform, NEW.rate_group) IS DISTINCT FROM (OLD.rate_rps, OLD.platform, OLD.rate_group))
    EXECUTE FUNCTION rate_changed();

CREATE OR REPLACE TRIGGER rate_changed
    BEFORE UPDATE OF rate_rps ON platform_limits
    FOR EACH ROW
    WHEN (NEW.rate_rps IS DISTINCT FROM OLD.rate_rps)
    EXECUTE FUNCTION rate_changed();
