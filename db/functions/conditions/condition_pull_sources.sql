-- condition_pull_sources(failures) -> the workspaces with a source that failed so many times in a row, or more
--
-- found: how many such sources.
CREATE OR REPLACE FUNCTION condition_pull_sources(p_failures bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT s.workspace_id, count(*), NULL::timestamptz,
           jsonb_path_query_array(
               jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                             'name', s.source_id, 'code', s.last_error ->> 'code', 'count', s.failures))
                         ORDER BY s.failures DESC, s.source_id), '$[0 to 4]')
    FROM pull_sources s
    JOIN workspaces w USING (workspace_id)
    WHERE s.enabled
      AND w.status = 'active'
      AND s.failures > 0
      AND s.failures >= p_failures
    GROUP BY s.workspace_id
$$;
