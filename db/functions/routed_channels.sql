-- routed_channels(workspace_id, post) -> the enabled channels that a post goes to, before dedup
--
-- route_filter decides over the post's tags; send_mode over whether it has media; the post's own hints
-- (routing.channels, routing.channel_tags) narrow the rest and never widen it.
--
-- Plain SQL without a role or settings of its own, so that the planner writes it into the query that asks.
CREATE OR REPLACE FUNCTION routed_channels(p_workspace_id uuid, p_post jsonb)
RETURNS TABLE (channel_id uuid, profile_hash text, dedup_ttl_hours int)
LANGUAGE sql
STABLE
AS $$
    SELECT c.channel_id, c.profile_hash, c.dedup_ttl_hours
    FROM channels c
    CROSS JOIN (
        SELECT ARRAY(SELECT jsonb_array_elements_text(p_post -> 'tags')) AS tags,
               ARRAY(SELECT jsonb_array_elements_text(p_post #> '{routing,channels}')) AS channels,
               ARRAY(SELECT jsonb_array_elements_text(p_post #> '{routing,channel_tags}')) AS channel_tags,
               p_post #>> '{payload,type}' = 'media' AS has_media
    ) AS post
    WHERE c.workspace_id = p_workspace_id
      AND c.enabled
      AND (c.route_filter IS NULL OR route_matches(post.tags, c.route_filter))
      AND (c.send_mode = 'mixed' OR (c.send_mode = 'media') = post.has_media)
      AND (post.channels = '{}' OR c.channel_id::text = ANY (post.channels))
      AND (post.channel_tags = '{}' OR c.tags && post.channel_tags)
$$;
