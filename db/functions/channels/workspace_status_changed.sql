-- workspace_status_changed() trigger on workspaces: keeps status_since when the status changes
--
-- It works for functions and for hand-written statements alike. `autopost why` shows status_since.
CREATE OR REPLACE FUNCTION workspace_status_changed()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.status_since := clock_timestamp();
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER workspace_status_changed
    BEFORE UPDATE OF status ON workspaces
    FOR EACH ROW
    WHEN (NEW.status <> OLD.status)
    EXECUTE FUNCTION workspace_status_changed();
