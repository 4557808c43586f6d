-- events_are_append_only() trigger on events: no UPDATE, no DELETE, no TRUNCATE for any role. Raises AP007.
-- Old events are deleted by dropping a partition. The row trigger is there because partitions inherit it.
CREATE OR REPLACE FUNCTION events_are_append_only()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'events are append-only: % refused', lower(TG_OP) USING ERRCODE = 'AP007';
END $$;

CREATE OR REPLACE TRIGGER events_are_append_only
    BEFORE UPDATE OR DELETE ON events
    FOR EACH ROW EXECUTE FUNCTION events_are_append_only();

CREATE OR REPLACE TRIGGER events_are_not_truncated
    BEFORE TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION events_are_append_only();
