-- route_posts(workspace_id, posts, look_up) -> where each post goes, before dedup, and which renderings it lacks
--
-- Routes are those of the post's own tags. Known content is routed by the tags that it was first seen with: only the
-- holder of the content's lock knows them for sure (enqueue_distinct_posts). Here they are looked up only to find
-- missing renderings, and only on request or when no channel takes a post: nearly every content is new.
--
-- routes       the post's place, the channels that show it the same way, and what they show; numbered from 1. Of a
--              post's routes with the same plan each names the first one in `shows`
-- missing      {place: [profile, …]}: posts without a rendering for the profile of a channel they go to, with all
--              that compiling needs. Posts with media still to be fetched bring none
-- nowhere      places of posts that no channel takes, of contents that were never seen; null when there are none
-- some_fail    a route has problems instead of a plan
CREATE OR REPLACE FUNCTION route_posts(
    p_workspace_id uuid,
    p_posts post[],
    p_look_up boolean DEFAULT true,
    OUT routes route[],
    OUT missing jsonb,
    OUT nowhere int[],
    OUT some_fail boolean
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _lacking int[];
    _routed int;
    _seen jsonb;
BEGIN
    SELECT array_agg((r.place, r.dedup_ttl_hours, r.channel_ids, r.plan_hash, r.rendered_text, r.plan, r.calls,
                      r.template_version, r.problems, r.number, r.shows)::route),
           array_agg(DISTINCT r.place) FILTER (WHERE r.is_missing),
           count(DISTINCT r.place),
           bool_or(r.problems IS NOT NULL)
    INTO routes, _lacking, _routed, some_fail
    FROM (
        SELECT p.place, r.dedup_ttl_hours, r.channel_ids, s.plan_hash, s.rendered_text, s.plan, s.calls,
               s.template_version, s.problems,
               s.profile_hash IS NULL AND p.request IS NULL AS is_missing,
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
    IF _routed < cardinality(p_posts) THEN
        nowhere := ARRAY(SELECT p.place FROM unnest(p_posts) AS p EXCEPT SELECT r.place FROM unnest(routes) AS r);
    ELSIF NOT p_look_up THEN
        RETURN;
    END IF;

    SELECT jsonb_object_agg(p.place, m.tags)
    INTO _seen
    FROM unnest(p_posts) AS p
    CROSS JOIN LATERAL ( -- no workspace_id inside the fence: its key would read the whole workspace
        SELECT m.workspace_id, m.tags
        FROM messages m
        WHERE m.content_hash = p.content_hash
          AND m.hash_version = p.hash_version
        OFFSET 0
    ) AS m
    WHERE p.request IS NULL
      AND m.workspace_id = p_workspace_id;
    IF _seen IS NULL THEN
        RETURN;
    END IF;
    nowhere := (SELECT array_agg(n.place) FROM unnest(nowhere) AS n (place) WHERE NOT _seen ? n.place::text);
    SELECT missing || coalesce(jsonb_object_agg(p.place, coalesce(missing -> p.place::text, '[]') || m.profiles), '{}')
    INTO missing
    FROM unnest(p_posts) AS p
    CROSS JOIN LATERAL (
        SELECT missing_profiles(
            p_workspace_id, jsonb_populate_record(p, jsonb_build_object('tags', _seen -> p.place::text))) AS profiles
    ) AS m
    WHERE _seen -> p.place::text <> to_jsonb(p.tags)
      AND m.profiles <> '[]';
END $$;
