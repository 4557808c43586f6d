-- condition_staged_posts(older_than, deadline) -> the workspaces with accepted posts whose media is stuck
--
-- found: how many (stuck_staged_posts). The default deadline is six hours.
CREATE OR REPLACE FUNCTION condition_staged_posts(p_older_than interval, p_deadline interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT s.workspace_id, sum(s.posts)::bigint, min(s.since),
           jsonb_path_query_array(
               jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                             'name', s.why, 'code', s.code, 'count', s.posts, 'id', s.post_id))
                         ORDER BY s.posts DESC, s.why, s.code), '$[0 to 4]')
    FROM (
        SELECT p.workspace_id, p.why, p.code, count(*) AS posts, min(p.since) AS since,
               (array_agg(p.post_id ORDER BY p.since))[1] AS post_id
        FROM stuck_staged_posts(p_older_than, coalesce(p_deadline, '6 hours')) AS p
        WHERE p_older_than IS NOT NULL
        GROUP BY p.workspace_id, p.why, p.code
    ) AS s
    GROUP BY s.workspace_id
$$;
