-- routed_channels(workspace_id, tags, channels, channel_tags, has_media) -> the enabled channels that a post goes to
--
-- Before dedup. route_filter decides by the post's tags; send_mode by whether it has media; the post's own hints
-- (channels and channel_tags of its routing) narrow the rest and never widen it.
--
-- Plain SQL without a role or settings of its own, so that the planner inlines it.
CREATE OR REPLACE FUNCTION routed_channels(
    p_workspace_id uuid,
    p_tags text[],
    p_channels text[],
    p_channel_tags text[],
    p_has_media boolean
)
RETURNS TABLE (channel_id uuid, profile_hash text, dedup_ttl_hours int)
LANGUAGE sql
STABLE
AS $$
    SELECT c.channel_id, c.profile_hash, c.dedup_ttl_hours
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.enabled
      AND (c.route_filter IS NULL OR route_matches(p_tags, c.route_filter))
      AND (c.send_mode = 'mixed' OR (c.send_mode = 'media') = p_has_media)
      AND (p_channels = '{}' OR c.channel_id::text = ANY (p_channels))
      AND (p_channel_tags = '{}' OR c.tags && p_channel_tags)
$$;
