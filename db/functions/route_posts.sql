-- route_posts(workspace_id, posts) -> where each of them goes, before dedup, and what it lacks for it
--
-- routes       the post's place, the channels that show it the same way, and what they show; numbered from 1. Of routes
--              of a post that show the same plan each says in `shows` which is the first
-- missing      {place: [profile, …]}: posts that bring no rendering for the profile of a channel they go to, with all
--              that compiling needs
CREATE OR REPLACE FUNCTION route_posts(
    p_workspace_id uuid,
    p_posts post[],
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
    SELECT array_agg((r.place, r.dedup_ttl_hours, r.channel_ids, r.plan_hash, r.rendered_text, r.plan, r.calls,
                      r.template_version, r.problems, r.number, r.shows)::route),
           array_agg(DISTINCT r.place) FILTER (WHERE r.is_missing)
    INTO routes, _lacking
    FROM (
        SELECT p.place, r.dedup_ttl_hours, r.channel_ids, s.plan_hash, s.rendered_text, s.plan, s.calls,
               s.template_version, s.problems, s.profile_hash IS NULL AS is_missing,
               row_number() OVER by_plan AS number,
               rank() OVER by_plan AS shows
        FROM unnest(p_posts) AS p
        CROSS JOIN LATERAL (
            SELECT c.profile_hash, c.dedup_ttl_hours, array_agg(c.channel_id) AS channel_ids
            FROM routed_channels(
                p_workspace_id, p.tags, p.channels, p.channel_tags, p.payload ->> 'type' = 'media') AS c
            GROUP BY c.profile_hash, c.dedup_ttl_hours
        ) AS r
        LEFT JOIN LATERAL (
            SELECT *
            FROM jsonb_to_recordset(p.renderings) AS s (
                profile_hash text, plan_hash text, rendered_text text, plan jsonb, calls smallint,
                template_version text, problems jsonb)
            WHERE s.profile_hash = r.profile_hash
            LIMIT 1
        ) AS s ON true
        WINDOW by_plan AS (ORDER BY p.place, s.plan_hash)
    ) AS r;

    missing := '{}';
    IF _lacking IS NOT NULL THEN
        SELECT jsonb_object_agg(p.place, missing_profiles(p_workspace_id, p))
        INTO missing
        FROM unnest(p_posts) AS p
        WHERE p.place = ANY (_lacking);
    END IF;
END $$;
