-- deliveries_after_delete() trigger on deliveries, after DELETE, once per statement; and on TRUNCATE
--
-- Only deliveries that have ended may be deleted. TRUNCATE is refused always, because it does not say which rows it
-- deletes.
--
-- Raises    AP005
CREATE OR REPLACE FUNCTION deliveries_after_delete()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'deliveries cannot be truncated' USING ERRCODE = 'AP005', HINT = 'delete what is finished';
    ELSIF EXISTS (SELECT 1 FROM old_rows WHERE status IN ('queued', 'retry', 'claimed', 'sending')) THEN
        RAISE EXCEPTION 'a live delivery cannot be deleted'
            USING ERRCODE = 'AP005', HINT = 'move it to dead first, with an event that says why';
    END IF;

    DELETE FROM dead_letters g
    USING old_rows o
    WHERE g.workspace_id = o.workspace_id
      AND g.delivery_id = o.delivery_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER deliveries_after_delete
    AFTER DELETE ON deliveries
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION deliveries_after_delete();

CREATE OR REPLACE TRIGGER deliveries_are_not_truncated
    BEFORE TRUNCATE ON deliveries
    FOR EACH STATEMENT EXECUTE FUNCTION deliveries_after_delete();
