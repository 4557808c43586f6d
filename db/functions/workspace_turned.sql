-- workspace_turned() trigger on workspaces: since when a workspace is active, paused or disabled
--
-- Whoever turns it, by hand or by function; told by `autopost why`.
CREATE OR REPLACE FUNCTION workspace_turned()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.status_since := clock_timestamp();
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER workspace_turned
    BEFORE UPDATE OF status ON workspaces
    FOR EACH ROW
    WHEN (NEW.status <> OLD.status)
    EXECUTE FUNCTION workspace_turned();
