-- check_writes() -> nothing, when the database can write
--
-- What /readyz asks: a standby, a database that was set to read-only and a disk that is full answer a SELECT as ever.
-- Writes a record of the log, which a commit makes durable, and a small temporary file, which the data's disk must have
-- room for: no row, so nothing that would have to be vacuumed.
--
-- Raises       25006 (read_only_sql_transaction) when nothing may be written, 53100 (disk_full) and what else the
--              server says when it cannot be.
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
    -- More than work_mem, so it is kept in a file.
    PERFORM count(*) FROM generate_series(1, 10000);
END $$;
