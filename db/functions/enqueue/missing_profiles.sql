-- missing_profiles(workspace_id, post) -> the render profiles that the post needs and has no rendering for
--
-- Each with all that compiling needs, so that the caller compiles them and calls again.
CREATE OR REPLACE FUNCTION missing_profiles(p_workspace_id uuid, p_post post)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(jsonb_agg(to_jsonb(p)), '[]')
    FROM (
        SELECT DISTINCT ON (f.profile_hash) f.*
        FROM routed_channels(
            p_workspace_id, p_post.tags, p_post.channels, p_post.channel_tags, p_post.payload ->> 'type' = 'media'
        ) AS r
        JOIN channels c
          ON c.workspace_id = p_workspace_id
         AND c.channel_id = r.channel_id
        CROSS JOIN LATERAL render_profile(c) AS f
        WHERE NOT EXISTS (
            SELECT 1
            FROM jsonb_array_elements(p_post.renderings) AS g
            WHERE g ->> 'profile_hash' = r.profile_hash
        )
        ORDER BY f.profile_hash
    ) AS p
$$;
