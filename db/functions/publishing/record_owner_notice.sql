-- record_owner_notice(workspace_id, publication_id, version, code, outcome, error, wait, base) -> void
--
-- delivered      the owner has it
-- refused        the owner's address answers and does not accept this notice: it is tried again alone
-- unreachable    nobody answers: all notices for this address wait as long
--
-- The wait doubles from `base` to an hour, and is never shorter than what was asked for.
--
-- Locks          publication_notices
-- Raises         AP011 for an unknown outcome
CREATE OR REPLACE FUNCTION record_owner_notice(
    p_workspace_id uuid,
    p_publication_id uuid,
    p_version int,
    p_code text,
    p_outcome text,
    p_error text DEFAULT NULL,
    p_wait interval DEFAULT NULL,
    p_base interval DEFAULT '2 seconds'
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _tried publication_notices;
BEGIN
    IF p_outcome NOT IN ('delivered', 'refused', 'unreachable') THEN
        RAISE EXCEPTION 'a notice cannot end as %', p_outcome USING ERRCODE = 'AP011';
    END IF;
    UPDATE publication_notices n
    SET attempts = n.attempts + 1,
        told_at = CASE WHEN p_outcome = 'delivered' THEN clock_timestamp() END,
        last_error = left(p_error, 200),
        next_try_at = clock_timestamp()
            + greatest(p_wait, least(p_base * 2 ^ least(n.attempts, 20), interval '1 hour'))
    WHERE n.workspace_id = p_workspace_id
      AND n.publication_id = p_publication_id
      AND n.version = p_version
      AND n.code = p_code
      AND n.told_at IS NULL
    RETURNING n.* INTO _tried;
    IF p_outcome = 'unreachable' THEN
        UPDATE publication_notices n
        SET next_try_at = _tried.next_try_at
        WHERE n.workspace_id = p_workspace_id
          AND n.owner = _tried.owner
          AND n.next_try_at < _tried.next_try_at
          AND n.told_at IS NULL
          AND n.given_up_at IS NULL;
    END IF;
END $$;
