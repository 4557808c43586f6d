-- has_message() trigger on renderings, after INSERT, once per statement
--
-- Its foreign key, for all rows of a statement at once; see has_workspace. The other side is message_gone.
--
-- Locks     messages FOR KEY SHARE, by key
-- Raises    foreign_key_violation without a message
CREATE OR REPLACE FUNCTION has_message()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    IF EXISTS (
        SELECT 1
        FROM (
            SELECT DISTINCT n.workspace_id, n.message_id
            FROM new_rows n
            ORDER BY n.workspace_id, n.message_id
        ) AS n
        WHERE NOT EXISTS (
            SELECT 1
            FROM messages m
            WHERE m.workspace_id = n.workspace_id
              AND m.message_id = n.message_id
            FOR KEY SHARE
        )
    ) THEN
        RAISE EXCEPTION 'a row of % has no message', TG_TABLE_NAME USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER has_message
    AFTER INSERT ON renderings
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION has_message();
