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
        SELECT DISTINCT ON (c.profile_hash)
               c.profile_hash, c.platform, c.send_mode, c.settings - 'message_thread_id' AS settings,
               c.template_ref, t.version AS template_version, t.body AS template_body,
               coalesce(t.defaults, '{}') AS template_defaults, t.parse_mode AS template_parse_mode
        FROM routed_channels(
            p_workspace_id, p_post.tags, p_post.channels, p_post.channel_tags, p_post.payload ->> 'type' = 'media'
        ) AS r
        JOIN channels c
          ON c.workspace_id = p_workspace_id
         AND c.channel_id = r.channel_id
        LEFT JOIN LATERAL (
            SELECT t.version, t.body, t.defaults, t.parse_mode
            FROM templates t
            WHERE t.workspace_id = c.workspace_id
              AND t.template_id = c.template_ref
            ORDER BY t.version DESC
            LIMIT 1
        ) AS t ON true
        WHERE NOT EXISTS (
            SELECT 1
            FROM jsonb_array_elements(p_post.renderings) AS g
            WHERE g ->> 'profile_hash' = r.profile_hash
        )
        ORDER BY c.profile_hash
    ) AS p
$$;
