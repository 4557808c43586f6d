-- delivery_gone() trigger on deliveries, after DELETE, once per statement
--
-- Only what is finished may be deleted. Raises AP005 otherwise: a live delivery is a promise. TRUNCATE does not say
-- what it takes, so it is refused.
CREATE OR REPLACE FUNCTION delivery_gone()
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

    DELETE FROM given_up g
    USING old_rows o
    WHERE g.workspace_id = o.workspace_id
      AND g.delivery_id = o.delivery_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER delivery_gone
    AFTER DELETE ON deliveries
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION delivery_gone();

CREATE OR REPLACE TRIGGER deliveries_are_not_truncated
    BEFORE TRUNCATE ON deliveries
    FOR EACH STATEMENT EXECUTE FUNCTION delivery_gone();
