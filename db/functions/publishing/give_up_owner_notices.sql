-- give_up_owner_notices(after) -> how many notices are not tried any more, by target and last error
--
-- An owner who could not be told for so long is not told: the alert to the operator remains. The row says why:
-- last_error, or no_target when this installation could not send it at all.
--
-- Locks     publication_notices
CREATE OR REPLACE FUNCTION give_up_owner_notices(p_after interval)
RETURNS TABLE (target text, error text, notices bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH gone AS (
        UPDATE publication_notices n
        SET given_up_at = clock_timestamp(),
            last_error = coalesce(n.last_error, 'no_target')
        WHERE n.created_at <= clock_timestamp() - p_after
          AND n.told_at IS NULL
          AND n.given_up_at IS NULL
        RETURNING n.target, n.last_error
    )
    SELECT g.target, g.last_error, count(*)
    FROM gone g
    GROUP BY g.target, g.last_error
    ORDER BY g.target, g.last_error;
END $$;
