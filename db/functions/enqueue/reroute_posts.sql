-- reroute_posts(workspace_id, posts, routes, retagged) -> the routes, with those of retagged contents found again
--
-- The caller holds the contents, so the tags that they were first seen with do not change any more.
--
-- retagged     {place: {"kept": [tag, …]}}: posts whose content was first seen with other tags, and these tags
CREATE OR REPLACE FUNCTION reroute_posts(p_workspace_id uuid, p_posts post[], p_routes route[], p_retagged jsonb)
RETURNS route[]
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _last int := (SELECT max(r.number) FROM unnest(p_routes) AS r);
    _found record;
BEGIN
    _found := route_posts(p_workspace_id, ARRAY(
        SELECT jsonb_populate_record(p, jsonb_build_object('tags', p_retagged #> ARRAY[p.place::text, 'kept']))
        FROM unnest(p_posts) AS p
        WHERE p_retagged ? p.place::text), false);
    RETURN ARRAY(
        SELECT r
        FROM unnest(p_routes) AS r
        WHERE NOT p_retagged ? r.place::text
        UNION ALL
        SELECT jsonb_populate_record(r, jsonb_build_object(
                   'number', r.number + coalesce(_last, 0), 'shows', r.shows + coalesce(_last, 0)))
        FROM unnest(_found.routes) AS r);
END $$;
