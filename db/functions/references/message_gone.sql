-- message_gone() trigger on messages, after DELETE, once per statement
--
-- Deletes its renderings. A transaction that adds one locks the message (has_message), so the delete has waited for it,
-- and this statement, which starts later, sees what was added. Deliveries protect their message: refers_to_deliveries.
--
-- Changes   renderings
CREATE OR REPLACE FUNCTION message_gone()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    DELETE FROM renderings r
    WHERE r.ctid = ANY (ARRAY(
        SELECT s.place
        FROM old_rows o
        CROSS JOIN LATERAL ( -- no workspace_id inside the fence: a join might read the whole workspace
            SELECT s.ctid AS place, s.workspace_id
            FROM renderings s
            WHERE s.message_id = o.message_id
            OFFSET 0
        ) AS s
        WHERE s.workspace_id = o.workspace_id
    ));
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER message_gone
    AFTER DELETE ON messages
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION message_gone();
