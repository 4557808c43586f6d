-- condition_set_aside(failures)
-- -> the workspaces that a loop of a service has set aside after so many failures in a row
--
-- found: how many loops. causes: what failed, and with which error. A stopped service does not renew its entry: five
-- minutes after its next try was due the entry does not count any more.
CREATE OR REPLACE FUNCTION condition_set_aside(p_failures bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT s.workspace_id, count(*), min(s.since),
           jsonb_path_query_array(
               jsonb_agg(jsonb_build_object('name', s.work, 'code', s.error, 'count', s.failures)
                         ORDER BY s.failures DESC, s.work), '$[0 to 4]')
    FROM set_aside s
    WHERE s.failures >= p_failures
      AND s.until > clock_timestamp() - interval '5 minutes'
    GROUP BY s.workspace_id
$$;
