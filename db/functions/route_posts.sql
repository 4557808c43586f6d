-- route_posts(workspace_id, posts, chosen) -> where each of the chosen goes, before dedup, and what it lacks for it
--
-- posts        as for enqueue_messages_and_deliveries_batch; chosen are places in it, from 1
-- routes       the post's place, which of its renderings is shown, and the channels that show it
-- missing      {place: [profile, …]}: posts that bring no rendering for the profile of a channel they go to, with all
--              that compiling needs
CREATE OR REPLACE FUNCTION route_posts(
    p_workspace_id uuid,
    p_posts jsonb,
    p_chosen int[],
    OUT routes route[],
    OUT missing jsonb
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _lacking int[];
BEGIN
    WITH given AS MATERIALIZED (
        SELECT c.place,
               ARRAY(SELECT jsonb_array_elements_text(p.post -> 'tags')) AS tags,
               ARRAY(SELECT jsonb_array_elements_text(p.post #> '{routing,channels}')) AS channels,
               ARRAY(SELECT jsonb_array_elements_text(p.post #> '{routing,channel_tags}')) AS channel_tags,
               p.post #>> '{payload,type}' = 'media' AS has_media,
               ARRAY(SELECT r ->> 'profile_hash' FROM jsonb_array_elements(p.post -> 'renderings') AS r) AS profiles
        FROM unnest(p_chosen) AS c (place)
        CROSS JOIN LATERAL (SELECT p_posts -> (c.place - 1) AS post) AS p
    ), routed AS MATERIALIZED (
        SELECT g.place, array_position(g.profiles, r.profile_hash) AS rendering, r.dedup_ttl_hours,
               array_agg(r.channel_id) AS channel_ids
        FROM given g
        CROSS JOIN LATERAL routed_channels(p_workspace_id, g.tags, g.channels, g.channel_tags, g.has_media) AS r
        GROUP BY g.place, array_position(g.profiles, r.profile_hash), r.dedup_ttl_hours
    )
    SELECT array_agg((r.place, r.rendering, r.dedup_ttl_hours, r.channel_ids)::route),
           array_agg(DISTINCT r.place) FILTER (WHERE r.rendering IS NULL)
    INTO routes, _lacking
    FROM routed r;

    missing := '{}';
    IF _lacking IS NOT NULL THEN
        SELECT jsonb_object_agg(l.place, missing_profiles(p_workspace_id, p_posts -> (l.place - 1)))
        INTO missing
        FROM unnest(_lacking) AS l (place);
    END IF;
END $$;
