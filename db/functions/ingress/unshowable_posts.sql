-- unshowable_posts(workspace_id, posts, routes) -> places of posts that none of their channels can show
--
-- Only posts whose routes are final: content that was first seen with other tags is routed by those, and content that a
-- channel has already is suppressed there as a twin. Both are judged by enqueue_seen_posts, under the lock of the content.
--
-- routes       those of route_posts
CREATE OR REPLACE FUNCTION unshowable_posts(p_workspace_id uuid, p_posts post[], p_routes route[])
RETURNS int[]
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
    SELECT coalesce(array_agg(p.place), '{}')
    FROM unnest(p_posts) AS p
    JOIN (
        SELECT r.place
        FROM unnest(p_routes) AS r
        GROUP BY r.place
        HAVING bool_and(r.problems IS NOT NULL)
    ) AS failing USING (place)
    WHERE p.request IS NULL
      AND NOT EXISTS (
          SELECT 1
          FROM ( -- no workspace_id inside the fence: its key would read the whole workspace
              SELECT m.workspace_id, m.message_id, m.tags
              FROM messages m
              WHERE m.content_hash = p.content_hash
                AND m.hash_version = p.hash_version
              OFFSET 0
          ) AS m
          WHERE m.workspace_id = p_workspace_id
            AND (m.tags <> p.tags OR EXISTS (
                SELECT 1
                FROM deliveries d
                WHERE d.workspace_id = p_workspace_id
                  AND d.message_id = m.message_id
                  AND d.status NOT IN ('failed_permanent', 'dead', 'deduped', 'cancelled')
            ))
      )
$$;
