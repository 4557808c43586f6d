-- condition_refused_claims(longer_than) -> the workspaces where no claim has got its lock for longer than that
--
-- found: the channels that are due there. causes: the backend that holds the lock.
CREATE OR REPLACE FUNCTION condition_refused_claims(p_longer_than interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT r.workspace_id, due.channels, r.since,
           CASE WHEN r.blocking_pid IS NULL THEN '[]'::jsonb ELSE jsonb_build_array(jsonb_strip_nulls(
               jsonb_build_object(
                   'name', concat_ws(' ', 'lock held by', r.blocking_user, nullif(r.blocking_application, ''),
                                     'pid ' || r.blocking_pid),
                   'code', r.blocking_state))) END
    FROM refused_claims(p_longer_than) AS r
    JOIN workspaces w
      ON w.workspace_id = r.workspace_id
     AND w.status = 'active'
    CROSS JOIN LATERAL (
        SELECT count(*) AS channels
        FROM channel_due d
        WHERE d.workspace_id = r.workspace_id
          AND d.next_due_at <= (SELECT clock_timestamp())
    ) AS due
    WHERE due.channels > 0
$$;
