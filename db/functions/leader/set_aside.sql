-- set_aside(workspace_id, work, failures, wait, error) -> void
--
-- A loop of a service failed for this workspace and skips it for `wait`: the others are served meanwhile. `why` and the
-- alert `set_aside` show it. Zero failures: it works again, and the entry is deleted.
--
-- failures     in a row, of this loop; where other loops of the same work fail too, they are counted together
-- work         what failed: claim | commit | renew | recover | …; the zero workspace stands for the installation
-- error        a class or a code, never the text of an error: that may quote a row
-- Changes      set_aside
CREATE OR REPLACE FUNCTION set_aside(
    p_workspace_id uuid,
    p_work text,
    p_failures int,
    p_wait interval DEFAULT '0',
    p_error text DEFAULT ''
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF p_failures < 1 THEN
        DELETE FROM set_aside s
        WHERE s.workspace_id = p_workspace_id
          AND s.work = p_work;
        RETURN;
    END IF;
    INSERT INTO set_aside AS s (workspace_id, work, failures, since, until, error)
    VALUES (p_workspace_id, left(p_work, 100), p_failures, clock_timestamp(),
            clock_timestamp() + least(p_wait, interval '1 day'), left(p_error, 200))
    ON CONFLICT (workspace_id, work) DO UPDATE
    SET failures = CASE WHEN s.until > clock_timestamp() - interval '5 minutes'
                        THEN greatest(excluded.failures, s.failures + 1) ELSE excluded.failures END,
        since = CASE WHEN s.until > clock_timestamp() - interval '5 minutes' THEN s.since ELSE excluded.since END,
        until = excluded.until,
        error = excluded.error;
END $$;
