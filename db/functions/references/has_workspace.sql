-- has_workspace() trigger on messages and ingest_runs, after INSERT, once per statement
--
-- Their foreign key, for all rows of a statement at once: row by row the keys of a post were a tenth of the database's
-- cost of accepting it. The other side is refers_to_posts; a row cannot change its workspace afterwards, see
-- check_key_unchanged.
--
-- Locks     workspaces FOR KEY SHARE, by key
-- Raises    foreign_key_violation without a workspace
CREATE OR REPLACE FUNCTION has_workspace()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    IF EXISTS (
        SELECT 1
        FROM (SELECT DISTINCT n.workspace_id FROM new_rows n ORDER BY n.workspace_id) AS n
        WHERE NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.workspace_id = n.workspace_id FOR KEY SHARE)
    ) THEN
        RAISE EXCEPTION 'a row of % has no workspace', TG_TABLE_NAME USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER has_workspace
    AFTER INSERT ON messages
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION has_workspace();

CREATE OR REPLACE TRIGGER has_workspace
    AFTER INSERT ON ingest_runs
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION has_workspace();
