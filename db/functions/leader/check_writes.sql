-- check_writes() -> nothing, when the database can write
--
-- For /readyz: a standby, a read-only database and a full disk still answer a SELECT. Writes a WAL record, which a
-- commit makes durable, and a small temporary file, for which the data's disk must have room: no row, so nothing that
-- has to be vacuumed.
--
-- Raises       25006 (read_only_sql_transaction) when nothing may be written, 53100 (disk_full), and other errors of
--              the server when it cannot write.
CREATE OR REPLACE FUNCTION check_writes()
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET work_mem = '64kB'
AS $$
BEGIN
    IF pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN
        RAISE EXCEPTION 'the database is read-only' USING ERRCODE = 'read_only_sql_transaction';
    END IF;
    PERFORM pg_logical_emit_message(true, 'autopost', '');
    -- More than work_mem, so it goes to a file.
    PERFORM count(*) FROM generate_series(1, 10000);
END $$;
